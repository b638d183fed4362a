import Foundation
import GatewayCore
import GatewayMQTT
import Testing

@testable import Gateway

/// How long services may take to stop.
struct StopLimitTests {
    @Test func cancelledServicesHaveTheTimeThatTheyNeed() {
        #expect(StopLimits.run.cancellation > GatewayCore.Gateway.longestEnd)
        #expect(StopLimits.run.cancellation > MQTTPublisher.longestEnd)
        #expect(StopLimits.fleet.graceful > FleetService.longestEnd)
        #expect(StopLimits.fleet.cancellation > FleetService.longestEnd)
    }

    /// systemd ends a service by force after `TimeoutStopSec`.
    @Test func servicesEndWithinTheTimeOfTheirUnits() throws {
        let package = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent()
        func limit(of unit: String) throws -> Duration {
            let text = try String(contentsOf: package.appending(path: "Service/\(unit)"), encoding: .utf8)
            let value = try #require(text.firstMatch(of: /TimeoutStopSec=(\d+)/)?.1)
            return .seconds(try #require(Int(value)))
        }
        #expect(try limit(of: "ble-gateway.service") > StopLimits.run.longest)
        #expect(try limit(of: "ble-gateway-fleet.service") > StopLimits.fleet.longest)
    }
}
