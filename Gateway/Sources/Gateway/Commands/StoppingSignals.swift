import Glibc
import UnixSignals

extension [UnixSignal] {
    /// The signals that stop a service. SIGHUP is one of them, because it tells of a terminal that was closed. If the
    /// process was started with SIGHUP ignored, as by `nohup`, it stays ignored.
    static var stopping: [UnixSignal] { isHangUpIgnored ? [.sigterm, .sigint] : [.sigterm, .sigint, .sighup] }

    private static var isHangUpIgnored: Bool {
        var action = sigaction()
        guard sigaction(SIGHUP, nil, &action) == 0 else { return false }
        // `SIG_IGN` is a number, which Swift imports as a function.
        return unsafeBitCast(action.__sigaction_handler.sa_handler, to: Int.self)
            == unsafeBitCast(SIG_IGN, to: Int.self)
    }
}
