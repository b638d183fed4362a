import BLE
import BLEHCITransport
import BLEKeyStore
import BluetoothHost
import Testing

@testable import CoreBluetooth

@Suite("Actions that wait for a host that cannot be opened at first", .timeLimit(.minutes(5)))
struct WaitingActionTests {
    private let steps = Mailroom<String>()
    private let permits = Mailroom<Result<String, OpeningFailure>>()
    private let failure = Result<String, OpeningFailure>.failure(OpeningFailure(.adapter(.noAdapter)))

    /// A host whose opening waits until the test lets it proceed.
    private func makeHost(retryDelay: Duration = .seconds(3600)) -> SharedHost {
        SharedHost(retryDelay: retryDelay) { [steps, permits] _ in
            steps.post("opening")
            do {
                let air = try await permits.next { $0 }.get()
                let adapter = try await Adapter.open(.virtual(name: air))
                return .success(OpenHost(adapter.host, store: .inMemory(), close: { await adapter.close() }))
            } catch {
                return .failure(error as? OpeningFailure ?? OpeningFailure(.adapter(.noAdapter)))
            }
        }
    }

    private func poweredOn(_ central: TestCentral) async {
        await central.events.next { if case .stateChanged(.poweredOn) = $0 { () } else { nil } }
    }

    private func unsupported(_ central: TestCentral) async {
        await central.events.next { if case .stateChanged(.unsupported) = $0 { () } else { nil } }
    }

    /// Submits an action that reports `step`.
    private func submit(_ step: String, to shared: SharedHost) {
        let isAccepted = shared.submit { [steps] _, _ in steps.post(step) }
        #expect(isAccepted)
    }

    @Test("They run once the host is open, after the members have begun")
    func waitingActionsRunOnceTheHostIsOpen() async {
        let shared = makeHost(retryDelay: .zero)
        let central = TestCentral(HostCentral(shared))
        #expect(await steps.next { $0 } == "opening")
        let backend = central.backend
        let isAccepted = shared.submit { [steps] _, _ in steps.post(backend.open == nil ? "too early" : "setting") }
        #expect(isAccepted)
        for _ in 1...2 {
            permits.post(failure)
            await unsupported(central)
            #expect(await steps.next { $0 } == "opening")
        }
        permits.post(.success("waiting actions"))
        await poweredOn(central)
        submit("later", to: shared)
        #expect(await steps.next { $0 } == "setting")
        #expect(await steps.next { $0 } == "later")
        #expect(central.events.waiting.isEmpty)
        backend.stop()
    }

    @Test("Those of an app end with its last member", arguments: [true, false])
    func waitingActionsEndWithTheLastMember(isFailed: Bool) async {
        let shared = makeHost()
        let first = TestCentral(HostCentral(shared))
        #expect(await steps.next { $0 } == "opening")
        submit("setting", to: shared)
        if isFailed {
            permits.post(failure)
            await unsupported(first)
            _ = await shared.settle()
        }
        first.backend.stop()
        let second = TestCentral(HostCentral(shared))
        if isFailed { #expect(await steps.next { $0 } == "opening") }
        permits.post(.success("waiting actions of a former app \(isFailed)"))
        await poweredOn(second)
        submit("later", to: shared)
        #expect(await steps.next { $0 } == "later")
        second.backend.stop()
    }

    private final class Delegate: PairingDelegate {
        func answer(_ inquiry: PairingInquiry) async -> PairingAnswer { .accept }
    }

    @Test("A pairing delegate that waits for the host is not kept")
    func waitingDelegateIsNotKept() async {
        let shared = makeHost()
        let central = TestCentral(HostCentral(shared))
        #expect(await steps.next { $0 } == "opening")
        var delegate: Delegate? = Delegate()
        weak let released = delegate
        if let delegate { CBSecurity(shared: shared).setPairingDelegate(delegate) }
        permits.post(failure)
        await unsupported(central)
        #expect(released != nil)
        withExtendedLifetime(delegate) {}
        delegate = nil
        #expect(released == nil)
        central.backend.stop()
    }
}
