import BLE
import BluetoothSensors
import Foundation
import NIOCore
import Synchronization
import Testing

@testable import GatewayCore

struct SensorNewsTests {
    private let address: DeviceAddress = "C0:DE:00:00:00:01"

    private func report(_ temperature: Double, format: SensorFormat = .bthome) -> SensorReport {
        SensorReport(format: format, readings: [SensorReading(.temperature, .number(temperature))])
    }

    @Test func changesAreNewsAndTheSameReadingsOnceAMinute() {
        var news = SensorNews()
        let start = NIODeadline.uptimeNanoseconds(1)
        let steps: [(temperature: Double, seconds: Int64, isNews: Bool)] = [
            (20, 0, true), (20, 1, false), (21, 2, true), (20, 3, true), (20, 62, false), (20, 63, true),
            (20, 64, false),
        ]
        for step in steps {
            let isNews = news.isNews(report(step.temperature), from: address, at: start + .seconds(step.seconds))
            #expect(isNews == step.isNews, "\(step)")
        }
    }

    @Test func formatsOfOneDeviceAreIndependent() {
        var news = SensorNews()
        let now = NIODeadline.uptimeNanoseconds(1)
        let answers = [SensorFormat.bthome, .pvvx, .bthome].map { format in
            news.isNews(report(20, format: format), from: address, at: now)
        }
        #expect(answers == [true, true, false])
    }

    @Test func reportsWithoutReadingsAreNoNews() {
        var news = SensorNews()
        let isNews = news.isNews(
            SensorReport(format: .bthome, protection: .needsKey),
            from: address,
            at: .uptimeNanoseconds(1)
        )
        #expect(!isNews)
    }

    @Test func repeatedPacketNumberDoesNotHideANewValue() {
        var news = SensorNews()
        let answers = [20.0, 20, 25].map { temperature in
            var repeated = report(temperature)
            repeated.isRepeat = true
            return news.isNews(repeated, from: address, at: .uptimeNanoseconds(1))
        }
        #expect(answers == [true, false, true])
    }

    @Test func eachEventIsNews() {
        var news = SensorNews()
        let press = SensorReading(.button, .event("press", count: nil))
        let battery = SensorReading(.battery, .number(90))
        let answers = [[battery, press], [battery], [battery, press], [press]].map { readings in
            news.isNews(SensorReport(format: .bthome, readings: readings), from: address, at: .uptimeNanoseconds(1))
        }
        #expect(answers == [true, false, true, true])
    }

    @Test func deviceThatSaysDifferentThingsInTurnIsNewsOnceAMinute() {
        var news = SensorNews()
        let start = NIODeadline.uptimeNanoseconds(1)
        var passed: [Int64] = []
        for second in Int64(0)..<120 {
            let reading = SensorReading(second.isMultiple(of: 2) ? .temperature : .humidity, .number(20))
            let report = SensorReport(format: .mibeacon, readings: [reading])
            if news.isNews(report, from: address, at: start + .seconds(second)) { passed.append(second) }
        }
        #expect(passed == [0, 1, 60, 61])
    }

    @Test func readingsOfASensorAreBounded() {
        var news = SensorNews()
        for number in 0..<1000 {
            let reading = SensorReading(.text, .text("a"), name: "text_\(number)")
            _ = news.isNews(.init(format: .bthome, readings: [reading]), from: address, at: .uptimeNanoseconds(1))
        }
        let first = SensorReading(.text, .text("a"), name: "text_0")
        let isNews = news.isNews(.init(format: .bthome, readings: [first]), from: address, at: .uptimeNanoseconds(1))
        #expect(isNews, "it was forgotten")
    }

    @Test func theFirstSensorIsForgottenBeyondTheLimit() {
        var news = SensorNews()
        let numbers = Array(UInt64(0)...UInt64(SensorNews.limit)) + [1, 0]
        let answers = numbers.map { number in
            news.isNews(report(20), from: DeviceAddress(number, isRandom: true), at: .uptimeNanoseconds(1))
        }
        #expect(answers.dropLast(2).allSatisfy { $0 })
        #expect(answers.suffix(2) == [false, true])
    }
}

struct SensorReadingsTests {
    /// Service data of BTHome v2: a packet number and a temperature in units of 0.01 °C.
    private func data(packet: UInt8, temperature: UInt16) -> AdvertisingData {
        let value = [UInt8(truncatingIfNeeded: temperature), UInt8(truncatingIfNeeded: temperature >> 8)]
        return AdvertisingData([.serviceData("FCD2", [0x40, 0x00, packet, 0x02] + value)])
    }

    @Test func eachPacketOfASensorIsObservedOnceAndInOrderWithoutClients() async throws {
        let air = "readings \(UInt64.random(in: 0...UInt64.max))"
        let sensor = try await Adapter.open(.virtual(name: air))
        let adapter = try await Adapter.open(.virtual(name: air))
        let (observations, continuation) = AsyncStream.makeStream(of: SensorObservation.self)
        var configuration = GatewayConfiguration(name: "hall")
        configuration.servesAPI = false
        configuration.whenObserved = { continuation.yield($0) }
        let gateway = Gateway(configuration: configuration, adapters: [adapter])
        let run = Task { try await gateway.run() }
        var iterator = observations.makeAsyncIterator()
        for packet in UInt8(0)..<5 {
            let advertising = try await sensor.peripheral.startAdvertising(
                AdvertisementConfiguration(
                    isConnectable: false,
                    isScannable: false,
                    interval: .milliseconds(20),
                    advertisingData: data(packet: packet, temperature: 2000 + UInt16(packet))
                )
            )
            let observation = try #require(await iterator.next())
            #expect(observation.gateway == "hall")
            let values = observation.report.readings.map(\.value)
            #expect(values == [.number(Double(packet)), .number(20 + Double(packet) / 100)])
            await advertising.stop()
        }
        #expect(await gateway.status.port == nil)
        run.cancel()
        try await run.value
        await adapter.close()
        await sensor.close()
    }
}
