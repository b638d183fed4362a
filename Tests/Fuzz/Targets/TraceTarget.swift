import BLEHCITransport
import BluetoothTesting

/// Fuzzes the playing of captures without their apps: a host plays each link in the role of either device.
func fuzzTrace(_ input: [UInt8]) {
    guard let recording = try? PacketRecording(input) else { return }
    // A capture of the maximum length has hundreds of links, each of which takes two worlds.
    for link in TracedLink.all(in: recording).prefix(4) {
        for isCentral in [true, false] { play(LinkReplay(link, isCentral: isCentral)) }
    }
}

private func play(_ replay: LinkReplay) {
    do {
        try replay.run()
    } catch {
        // The host may refuse what the capture asks for, but must not hang.
        if error is UnfinishedRun { stopFuzzing(error) }
    }
    require(replay.comparedCount <= replay.link.frames.count, "more frames were compared than the link has")
}
