import Foundation

/// The two directions of an L2CAP channel, as the host makes them and one app takes them over.
struct ChannelStreams: @unchecked Sendable {
    let input: InputStream
    let output: OutputStream
}
