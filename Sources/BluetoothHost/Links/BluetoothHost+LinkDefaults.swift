import BLEHCI
import BluetoothTypes

/// The settings of the host for its links, which a controller forgets at a reset.
struct LinkDefaults {
    var channels = ChannelClassification()
    /// The subrate parameters that the controller accepts as central.
    var subrate: SubrateParameters?
}

extension BluetoothHost {
    /// Sets the subrate parameters that this host, as the central, accepts from the peers of later links. Without a
    /// call, peers cannot have a subrate factor above 1 (Vol 4, Part E, 7.8.123).
    package func setDefaultSubrate(_ parameters: SubrateParameters) async throws(HostError) {
        guard parameters.isValid else { throw .invalidArgument("subrate parameters out of range: \(parameters)") }
        let information = try usableInformation()
        guard information.canSubrate, information.commands.contains(LESetDefaultSubrate.self) else {
            throw .notSupported(subratingObstacle)
        }
        do throws(CommandFailure) {
            try await perform(LESetDefaultSubrate(parameters))
        } catch {
            throw .command(error)
        }
        linkDefaults.subrate = parameters
    }

    /// Tells the controller which data channels may be used on links on which this host is the central. The controller
    /// avoids the others, for example because of a wireless network. A controller takes one classification a second; a
    /// newer one replaces one that waits.
    ///
    /// - Parameter map: two channels or more.
    package func classifyChannels(_ map: ChannelMap) async throws(HostError) {
        guard try usableInformation().commands.contains(LESetHostChannelClassification.self) else {
            throw .notSupported("this controller takes no classification of channels")
        }
        try await wait { host, call in
            host.perform(host.linkDefaults.channels.classify(map, for: call, at: host.loop.now))
            host.endInput()
        }
    }

    func advanceChannelClassification() {
        perform(linkDefaults.channels.advance(to: loop.now))
    }

    /// Repeats the settings on a controller that was reset.
    func repeatLinkDefaults() {
        if let subrate = linkDefaults.subrate { sendAndForget(LESetDefaultSubrate(subrate)) }
        perform(linkDefaults.channels.controllerIsReady(at: loop.now))
    }

    func endLinkDefaults(_ error: HostError) {
        perform(linkDefaults.channels.endAll(error))
    }

    private func perform(_ effects: [ChannelClassification.Effect]) {
        for effect in effects {
            switch effect {
            case .send(let map): send(map)
            case .wake(let due): _ = schedule(.channelClassification, at: due)
            case .finish(let call, let error): finish(call, error)
            }
        }
    }

    private func send(_ map: ChannelMap) {
        send(LESetHostChannelClassification(channelMap: map)) { [weak self] result in
            self?.assumeIsolated { host in
                let failure: CommandFailure? = if case .failure(let failure) = result { failure } else { nil }
                host.perform(host.linkDefaults.channels.answered(failure, at: host.loop.now))
            }
        }
    }
}
