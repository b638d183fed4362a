import BLE

extension GlobalOptions {
    /// The adapter's configuration according to the options.
    var configuration: Adapter.Configuration {
        var configuration = Adapter.Configuration()
        configuration.logger = output.logger
        configuration.capturePath = capture
        configuration.captureMasksKeys = maskKeys
        configuration.usesNetworkPrivacy = networkPrivacy
        configuration.enhancedBearerLimit = enhancedBearers
        configuration.usesSubrating = subrating
        configuration.stateLocation = state.location
        configuration.seed = seed
        configuration.warn = Output.complainAboutState
        return configuration
    }

    /// Opens the controller for `body`, closes it in any case, and passes the result to `show`.
    ///
    /// - Parameters:
    ///   - prepare: changes the configuration before the adapter is opened.
    ///   - show: prints the result. A failure of the capture is thrown afterwards, so that it does not hide the result.
    func withAdapter<Value: Sendable>(
        _ prepare: (inout Adapter.Configuration) -> Void = { _ in },
        _ body: @Sendable (Adapter) async throws -> Value,
        show: (Value) async throws -> Void = { _ in }
    ) async throws {
        var configuration = configuration
        if seed != nil { Output.complain("with --seed, keys and addresses are no secrets: for captures only") }
        prepare(&configuration)
        let specification = try controller.specification()
        let settings = configuration
        let opened: Adapter?
        do {
            opened = try await within(patience.duration) {
                try await Adapter.open(specification, configuration: settings)
            }
        } catch BLEError.adapter(.closedByPeer) {
            throw ToolError.closedAtStart("\(specification)")
        }
        guard let adapter = opened else { throw ToolError.notUp("\(specification)", patience) }
        let happenings = await adapter.events()
        let events = Task {
            var wasReset = false
            for await event in happenings {
                if case .resetting = event { wasReset = true }
                // At the opening, warnings have given the reason.
                if wasReset, case .stateUnavailable(let reason) = event { Output.complainAboutState(reason) }
                GlobalOptions.report(event)
            }
        }
        defer { events.cancel() }
        let value: Value
        do {
            value = try await body(adapter)
        } catch {
            await uncancelled { await adapter.close() }
            throw error
        }
        await uncancelled { await adapter.close() }
        try await show(value)
        // A capture that lacks its end must not be taken for a whole one.
        if let failure = adapter.captureFailure { throw failure }
    }

    /// Prints an event of the controller on standard error. Operations that fail because of it report that themselves.
    private static func report(_ event: HostEvent) {
        switch event {
        case .resetting(let reason): Output.complain("resetting the controller: \(reason)")
        case .scanRestarted(let silence):
            Output.complain("no advertisement was received for \(Seconds(silence)); scanning again")
        // The warnings have given the reason.
        case .poweredOn, .closed, .stateUnavailable: break
        case .eventsDropped(let count): Output.complain("\(count) events of the controller were dropped")
        }
    }
}
