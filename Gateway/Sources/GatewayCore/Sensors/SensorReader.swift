import BLE
import BluetoothSensors
import Foundation
import Logging
import NIOCore
import Synchronization

/// Decodes the advertisements of sensors, and passes on the reports that are new.
final class SensorReader: Sendable {
    private struct State {
        var decoder: SensorDecoder
        var news = SensorNews()
        /// The last counter of each sensor with a key.
        var counters: [DeviceAddress: UInt32] = [:]
        /// The addresses about whose encryption the log has a message, by the kind of the problem.
        var logged: [SensorProtection: Set<DeviceAddress>] = [:]
    }

    /// The greatest number of addresses with a message in the log about a problem that needs no key. Any device can
    /// invent addresses. Only an address with a key has one of the other problems, which bounds those.
    static let logLimit = 1024
    /// A counter that is more behind the last one is not that of a late report.
    private static let lateLimit: UInt32 = 100
    /// The same for counters of 8 bits. The devices count their measurements, which are seconds apart.
    private static let shortLateLimit: UInt8 = 8

    private let gateway: String
    private let logger: Logger
    private let observed: @Sendable (SensorObservation) -> Void
    private let state: Mutex<State>

    /// - Parameters:
    ///   - gateway: the name of the gateway.
    ///   - keys: the keys of encrypted sensors.
    ///   - observed: is called on the adapters' threads, and must not block.
    init(
        gateway: String,
        keys: [DeviceAddress: BindKey],
        logger: Logger,
        observed: @escaping @Sendable (SensorObservation) -> Void
    ) {
        self.gateway = gateway
        self.logger = logger
        self.observed = observed
        var decoder = SensorDecoder()
        for (address, key) in keys where !decoder.setKey(key, for: address) {
            logger.warning("there are too many keys of sensors; \(address) is not decrypted")
        }
        state = Mutex(State(decoder: decoder))
    }

    /// Decodes an advertisement.
    ///
    /// - Parameter data: the AD structures of the advertisement and of the scan response.
    func receive(_ data: [UInt8], of advertisement: Advertisement) {
        let address = advertisement.address
        // The lock is held while observations are passed on, which keeps their order.
        state.withLock { state in
            let reports = state.decoder.decode(data.rawSpan, from: address, at: advertisement.time)
            for report in reports {
                log(report, address, &state)
                guard state.news.isNews(report, from: address, at: .now()) else { continue }
                observed(
                    SensorObservation(
                        time: Date(),
                        gateway: gateway,
                        address: address,
                        name: advertisement.localName,
                        rssi: advertisement.rssi,
                        report: report
                    )
                )
            }
        }
    }

    func log(_ report: SensorReport, _ address: DeviceAddress) {
        state.withLock { log(report, address, &$0) }
    }

    private func log(_ report: SensorReport, _ address: DeviceAddress, _ state: inout State) {
        let problem: Logger.Message
        switch report.protection {
        case .none: return
        case .authenticated:
            state.counters[address] = report.counter
            return
        case .replayed:
            guard let last = state.counters[address], let counter = report.counter,
                let text = Self.problem(with: counter, after: last, in: report.format)
            else { return }
            problem = text
        case .needsKey: problem = "the sensor encrypts its readings; set its key with --bind-key"
        case .wrongKey: problem = "the readings of the sensor do not match its key; check --bind-key"
        case .downgraded: problem = "the sensor has a key, but a report under its address is not encrypted"
        case .unsupported: problem = "the sensor encrypts its readings in a way that is not supported"
        }
        let needsNoKey = report.protection == .needsKey || report.protection == .unsupported
        let limit = needsNoKey ? Self.logLimit : Int.max
        guard state.logged[report.protection, default: []].count < limit,
            state.logged[report.protection, default: []].insert(address).inserted
        else { return }
        logger.notice(problem, metadata: ["device": "\(address)"])
    }

    /// Describes why a report is dropped whose counter is not newer than the last accepted one.
    ///
    /// - Returns: nil if the report is a repetition, or late.
    private static func problem(
        with counter: UInt32,
        after last: UInt32,
        in format: SensorFormat
    ) -> Logger.Message? {
        guard format == .atc1441 || format == .pvvx else {
            guard last > counter, last - counter > lateLimit else { return nil }
            return """
                the counter of the sensor has gone back, as after a change of its battery; its readings are accepted \
                24 hours after the last one, or once the gateway is restarted
                """
        }
        // The counter wraps. One that is more than 128 behind is ahead.
        let distance = UInt8(truncatingIfNeeded: last) &- UInt8(truncatingIfNeeded: counter)
        guard distance > shortLateLimit, distance <= 128 else { return nil }
        return """
            the counter of the sensor, which has 8 bits, is \(distance) behind that of the last accepted report, as \
            after 128 or more reports that were not received, or after a change of its battery; at most its next \
            \(distance) reports are dropped, but none 24 hours after the accepted one, or once the gateway is restarted
            """
    }
}
