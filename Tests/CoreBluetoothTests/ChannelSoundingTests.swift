import BLEHCI
import BLEVirtualController
import BluetoothTesting
import Foundation
import Testing

@testable import CoreBluetooth

@Suite("Channel sounding of Core Bluetooth")
struct ChannelSoundingTests {
    @Test(
        "The role is the peripheral's, so this host has the other one",
        arguments: [
            (CBChannelSoundingSessionConfiguration.Role.initiator, ChannelSoundingRole.reflector),
            (.reflector, .initiator),
        ]
    )
    func hostHasTheOtherRole(role: CBChannelSoundingSessionConfiguration.Role, own: ChannelSoundingRole) {
        let fixture = CentralFixture()
        let peripheral = fixture.connectedPeripheral()
        _ = fixture.takeCalls()
        let configuration = CBChannelSoundingSessionConfiguration(role: role)
        #expect(configuration.role == role)
        peripheral.startChannelSoundingSession(configuration)
        peripheral.cancelChannelSoundingSession()
        #expect(fixture.takeCalls() == [.sound(own), .cancelSounding(peripheral.identifier)])
    }

    @Test("Each procedure is reported without a distance, and the end of the session")
    func procedureHasAnErrorInPlaceOfADistance() {
        let fixture = CentralFixture()
        let peripheral = fixture.connectedPeripheral()
        peripheral.startChannelSoundingSession(CBChannelSoundingSessionConfiguration(role: .reflector))
        for _ in 0..<2 { fixture.backend.procedureEnded.withLock { $0 }?() }
        fixture.answer(.sound(.initiator), Result<Void, BackendError>.success(()))
        #expect(fixture.takeTold() == ["distance none", "distance none", "sounding complete"])
        let errors = fixture.recorder.errors.map { ($0 as? CBError)?.code }
        #expect(errors == [.channelSoundingProcedureFailed, .channelSoundingProcedureFailed])
    }

    @Test("A session that cannot be started completes with the error")
    func failedSessionCompletesWithTheError() {
        let fixture = CentralFixture()
        let peripheral = fixture.connectedPeripheral()
        peripheral.startChannelSoundingSession(CBChannelSoundingSessionConfiguration(role: .reflector))
        let failure = BackendError.core(.channelSoundingConfigurationFailed)
        fixture.answer(.sound(.initiator), Result<Void, BackendError>.failure(failure))
        #expect(fixture.takeTold() == ["sounding complete"])
        #expect((fixture.recorder.errors.first as? CBError)?.code == .channelSoundingConfigurationFailed)
    }

    @Test("The feature has Apple's bit, and another feature needs no controller")
    func featureHasApplesBit() {
        #expect(CBCentralManager.Feature.channelSounding.rawValue == 1 << 10)
        #expect(CBCentralManager.supports(.extendedScanAndConnect))
        #expect(CBError.Code(rawValue: 19) == .channelSoundingConfigurationFailed)
        #expect(CBError.channelSoundingProcedureFailed.rawValue == 20)
    }
}
