import Foundation

/// The streams of an L2CAP channel, which the host creates and one app owns.
struct ChannelStreams: @unchecked Sendable {
    // @unchecked: the streams of a channel lock their state.

    let input: InputStream
    let output: OutputStream
}
