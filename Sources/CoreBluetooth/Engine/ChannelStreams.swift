import Foundation

/// The two directions of an L2CAP channel, as the host makes them and one app takes them over.
struct ChannelStreams: @unchecked Sendable {
    // @unchecked: the streams of a channel lock their state.

    let input: InputStream
    let output: OutputStream
}
