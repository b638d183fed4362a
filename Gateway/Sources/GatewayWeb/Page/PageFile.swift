import NIOCore

/// The files of the status page. They are part of the program, so it has no directory that a request could leave.
enum PageFile {
    /// The files by their paths.
    static let all: [String: WebResponse] = [
        "/": WebResponse(.ok, "text/html; charset=utf-8", ByteBuffer(bytes: PackageResources.index_html)),
        "/style.css": WebResponse(.ok, "text/css; charset=utf-8", ByteBuffer(bytes: PackageResources.style_css)),
        "/script.js": WebResponse(.ok, "text/javascript; charset=utf-8", ByteBuffer(bytes: PackageResources.script_js)),
        "/icon.svg": WebResponse(.ok, "image/svg+xml", ByteBuffer(bytes: PackageResources.icon_svg)),
    ]
}
