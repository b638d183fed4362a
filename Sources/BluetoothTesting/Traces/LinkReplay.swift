import BLE
import BLEATT
import BLEGATT
import BLEHCITransport
import BLEL2CAP
import BluetoothHost
import BluetoothTypes

/// Puts a host in the role of one of the two devices of a traced link, and compares its frames with those of that
/// device.
///
/// The host's server is built from the device's attributes in the trace. Its client sends the requests of the device's
/// client. Three kinds of frames are played: frames of the attribute channel, requests for connection parameters, and
/// the beginning of a pairing. The pairing stops before it depends on secrets that no trace contains.
package final class LinkReplay: Sendable {
    /// The first difference between the host and the traced device.
    package struct Difference: Sendable {
        /// The frame that the host should have sent; nil if no frame was left on the channel.
        package let expected: TracedLink.Frame?
        package let channel: ChannelIdentifier
        /// The frame that the host has sent; nil if it has sent nothing.
        package let sent: [UInt8]?
    }

    package let link: TracedLink
    /// The number of frames that the host has sent as in the trace.
    package var comparedCount: Int { state.comparedCount }
    package var difference: Difference? { state.difference }
    /// The number of frames of the trace that are not played.
    package var leftOutCount: Int { link.frames.count - plan.steps.count { $0.frame != nil } }

    private let plan: LinkPlan
    private let world = World(seed: 0)
    private let confined: LoopConfined<State>
    private var state: State { confined.value }

    private final class State {
        var comparedCount = 0
        var difference: Difference?
        var isMatched: [Bool]
        /// The steps whose frames the host has not sent yet.
        var awaited: [LinkPlan.Stream: ArraySlice<Int>] = [:]
        var database: TracedDatabase
        var controller: TracedController?
        var isBusy = false

        init(_ plan: LinkPlan) {
            isMatched = Array(repeating: false, count: plan.steps.count)
            for (index, step) in plan.steps.enumerated() where step.isOurs {
                awaited[step.stream, default: []].append(index)
            }
            // The requests to the host's server and its answers, without the requests of its client.
            database = TracedDatabase(
                plan.steps.filter { $0.channel == .attribute && $0.isOurs != $0.isFromServersClient }
                    .map { ($0.payload, $0.isOurs) }
            )
        }
    }

    /// - Parameter isCentral: whether the host takes the role of the central.
    package init(_ link: TracedLink, isCentral: Bool) {
        self.link = link
        plan = LinkPlan(link, isCentral: isCentral)
        confined = LoopConfined(State(plan), to: world.loop)
    }

    /// Plays the link to its end or to the first difference. Call it once.
    package func run() throws {
        defer { world.close() }
        let device = world.device("host")
        try world.run(limit: .seconds(86_400)) { try await self.play(on: device) }
    }

    private func play(on device: Device) async throws {
        var configuration = Adapter.Configuration()
        configuration.mtu = plan.mtu
        configuration.requestsMTU = false
        configuration.usesExtendedCommands = false
        configuration.security = plan.policy
        configuration.pairingDelegate = Consenting()
        let peer = link.peer ?? DeviceAddress(0xC000_0000_0001, isRandom: true)
        let adapter = try await Adapter.open(
            on: world.loop,
            configuration: configuration,
            random: SeededGenerator(seed: 0)
        ) { [self] () async throws(TransportError) in
            let controller = TracedController(
                try device.attach(),
                isCentral: plan.isCentral,
                peer: peer,
                loop: world.loop,
                onFrame: { channel, payload in self.hostHasSent(payload, on: channel) }
            )
            state.controller = controller
            return controller
        }
        if plan.peerHasOutOfBandData {
            var policy = plan.policy
            policy.ownOutOfBandData = await adapter.makeOutOfBandData().secret
            await adapter.setSecurityPolicy(policy)
        }
        await publish(on: adapter)
        let identifier = try await connect(adapter, to: peer)
        for index in plan.steps.indices where difference == nil {
            try await play(index, on: adapter.host, identifier)
        }
        await adapter.close()
    }

    /// Replaces the host's own attributes by those of the trace.
    private func publish(on adapter: Adapter) async {
        for handle in 1...64 as ClosedRange<UInt16> {
            await adapter.host.removeService(at: AttributeHandle(handle))
        }
        let definitions = state.database.definitions
        if await publish(definitions, on: adapter) { return }
        // Services that contradict each other in the trace are not served, which shows as a difference.
        for definition in definitions { _ = await publish([definition], on: adapter) }
    }

    private func publish(_ definitions: [ServiceDefinition], on adapter: Adapter) async -> Bool {
        let services = try? await adapter.peripheral.publish(definitions) { _, access in
            try self.state.database.answer(access).get()
        }
        return services != nil
    }

    private func connect(_ adapter: Adapter, to peer: DeviceAddress) async throws -> LinkIdentifier {
        if plan.isCentral { return try await adapter.central.connect(to: peer).link }
        let events = await adapter.peripheral.events()
        let advertising = try await adapter.peripheral.startAdvertising(AdvertisementConfiguration())
        defer { withExtendedLifetime(advertising) {} }
        for await event in events {
            if case .connected(let client, _) = event { return client }
        }
        throw BLEError.closed
    }

    // MARK: Playing

    private func play(_ index: Int, on host: BluetoothHost, _ link: LinkIdentifier) async throws {
        let step = plan.steps[index]
        guard step.isOurs else {
            state.controller?.deliver(step.payload, on: step.channel)
            // The host gets time to answer before the next frame arrives.
            return try await world.sleep(for: .milliseconds(1))
        }
        var hasBegun = false
        let deadline = world.elapsed + .seconds(40)
        while !state.isMatched[index], difference == nil {
            if !hasBegun, !state.isBusy, let initiative = plan.initiative(at: index) {
                hasBegun = true
                begin(initiative, on: host, link)
            }
            try await world.sleep(for: .milliseconds(1))
            if world.elapsed > deadline, !state.isMatched[index] {
                state.difference = Difference(expected: step.frame, channel: step.channel, sent: nil)
            }
        }
    }

    private func begin(_ initiative: LinkInitiative, on host: BluetoothHost, _ link: LinkIdentifier) {
        state.isBusy = true
        Task(executorPreference: world.taskExecutor) {
            // The frames show the result.
            try? await initiative.take(on: host, link)
            self.state.isBusy = false
        }
    }

    private func hostHasSent(_ payload: [UInt8], on channel: ChannelIdentifier) {
        guard difference == nil, channel == .attribute || channel == .securityManager || channel == .signaling else {
            return
        }
        let stream = LinkPlan.Stream(channel, payload)
        guard let next = state.awaited[stream]?.popFirst() else {
            // The last request may have no answer because the connection ended. Frames that the host sends on its own
            // on other channels are not compared.
            if stream == .requests || stream == .confirmations {
                state.difference = Difference(expected: nil, channel: channel, sent: payload)
            }
            return
        }
        if plan.steps[next].payload == payload {
            state.isMatched[next] = true
            state.comparedCount += 1
        } else {
            state.difference = Difference(expected: plan.steps[next].frame, channel: channel, sent: payload)
        }
    }
}

/// Consents to each pairing, which does not get further.
private struct Consenting: PairingDelegate {
    func answer(_ inquiry: PairingInquiry) async -> PairingAnswer { .accept }
}
