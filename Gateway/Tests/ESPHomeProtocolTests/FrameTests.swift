import ESPHomeMessages
import NIOCore
import Testing

@testable import ESPHomeProtocol

struct PlaintextFramingTests {
    private let framing = PlaintextFraming()

    @Test(
        arguments: [
            (Message(.pingRequest), [0, 0, 7]),
            (Message(.scannerStateResponse, payload: ByteBuffer(bytes: [8, 2])), [0, 2, 126, 8, 2]),
            (Message(.setConnectionParametersRequest, payload: ByteBuffer(bytes: [8])), [0, 1, 0x91, 0x01, 8]),
            (
                Message(.readResponse, payload: ByteBuffer(repeating: 5, count: 200)),
                [0, 0xC8, 0x01, 74] + [UInt8](repeating: 5, count: 200)
            ),
        ] as [(Message, [UInt8])]
    )
    func frameHasExactBytes(message: Message, bytes: [UInt8]) throws {
        var buffer = ByteBuffer()
        framing.encode(message, into: &buffer)
        #expect(Array(buffer.readableBytesView) == bytes)
        #expect(try framing.decode(from: &buffer) == message)
        #expect(buffer.readableBytes == 0)
    }

    @Test func incompleteFrameStaysInTheBuffer() throws {
        let bytes: [UInt8] = [0, 2, 126, 8, 2]
        for count in 0..<bytes.count {
            var buffer = ByteBuffer(bytes: bytes.prefix(count))
            #expect(try framing.decode(from: &buffer) == nil)
            #expect(buffer.readableBytes == count)
        }
    }

    @Test(
        arguments: [
            ([1, 0, 0], .wrongIndicator(1)),
            ([0x47], .wrongIndicator(0x47)),
            ([0, 0x80, 0x80, 0x80, 0x80, 0x01, 1], .malformedNumber),
            ([0, 1, 0xFF, 0xFF, 0xFF, 0xFF, 1], .malformedNumber),
            ([0, 0x81, 0x80, 0x02, 1], .oversizedFrame(32769)),
        ] as [([UInt8], ProtocolError)]
    )
    func malformedFrameIsRefused(bytes: [UInt8], error: ProtocolError) {
        var buffer = ByteBuffer(bytes: bytes)
        #expect(throws: error) { try framing.decode(from: &buffer) }
    }
}

struct AdvertisementBatchTests {
    @Test func batchHasExactBytes() {
        var batch = AdvertisementBatch()
        batch.append(RawAdvertisement(address: 0xC0DE_0000_0001, rssi: -60, isRandom: true, data: [2, 1, 6]))
        batch.append(RawAdvertisement(address: 1, rssi: -1, isRandom: false, data: []))
        let first: [UInt8] = [8, 0x81, 0x80, 0x80, 0x80, 0xE0, 0x9B, 0x30, 16, 119, 24, 1, 34, 3, 2, 1, 6]
        let second: [UInt8] = [8, 1, 16, 1]
        let expected = [10, UInt8(first.count)] + first + [10, UInt8(second.count)] + second
        #expect(Array(batch.message.payload.readableBytesView) == expected)
        #expect(batch.count == 2)
    }

    @Test func batchIsReadByProtocolBuffers() throws {
        var batch = AdvertisementBatch()
        for index in 0..<AdvertisementBatch.maximumCount {
            #expect(!batch.isFull)
            let data = [UInt8](repeating: UInt8(index), count: index * 20)
            batch.append(
                RawAdvertisement(
                    address: UInt64(index) << 40,
                    rssi: 20 - index * 9,
                    isRandom: index % 2 == 0,
                    data: data
                )
            )
        }
        #expect(batch.isFull)
        let decoded = try batch.message.decode(as: ESPHomeBluetoothLERawAdvertisementsResponse.self)
        for (index, advertisement) in decoded.advertisements.enumerated() {
            #expect(advertisement.address == UInt64(index) << 40)
            #expect(advertisement.rssi == Int32(20 - index * 9))
            #expect(advertisement.addressType == (index % 2 == 0 ? 1 : 0))
            #expect(Array(advertisement.data) == [UInt8](repeating: UInt8(index), count: index * 20))
        }
        #expect(decoded.advertisements.count == AdvertisementBatch.maximumCount)
    }

    @Test func valueMessageIsReadByProtocolBuffers() throws {
        let message = Message.value(.notifyDataResponse, address: 0xFFFF_FFFF_FFFF, handle: 300, value: [0, 1, 2])
        let decoded = try message.decode(as: ESPHomeBluetoothGATTNotifyDataResponse.self)
        #expect(decoded.address == 0xFFFF_FFFF_FFFF)
        #expect(decoded.handle == 300)
        #expect(Array(decoded.data) == [0, 1, 2])
    }
}
