import BLEByteCoding

/// An HCI event's parameters, which may borrow from the packet (Vol 4, Part E, 7.7).
///
/// Events are both encoded and decoded, so that a software controller can write the events that a host reads.
public protocol EventParameters: ~Escapable {
    /// The event code.
    static var code: UInt8 { get }

    /// Decodes the parameters, which fill `parameters`. The parameters of an LE Meta event begin after the subevent
    /// code.
    @_lifetime(copy parameters)
    init(decoding parameters: RawSpan) throws(PacketDecodingError)

    /// Appends the parameters, without header and subevent code.
    func encode(into buffer: inout PacketBuffer)

    /// Appends the whole packet: the event header, then the parameters (Vol 4, Part E, 5.4.4).
    ///
    /// The parameters of an event never exceed 255 bytes; longer data is cut.
    func encodePacket(into buffer: inout PacketBuffer)
}

extension EventParameters where Self: ~Escapable {
    public func encodePacket(into buffer: inout PacketBuffer) {
        let start = buffer.beginEvent(code: Self.code)
        encode(into: &buffer)
        buffer.endEvent(startingAt: start)
    }
}

/// The parameters of an LE Meta event (Vol 4, Part E, 7.7.65).
public protocol LEEventParameters: EventParameters, ~Escapable {
    /// The code that identifies the event among the LE Meta events: its first parameter.
    static var subeventCode: UInt8 { get }
}

extension LEEventParameters where Self: ~Escapable {
    public static var code: UInt8 { Event.leMetaCode }

    public func encodePacket(into buffer: inout PacketBuffer) {
        let start = buffer.beginEvent(code: Event.leMetaCode)
        buffer.append(Self.subeventCode)
        encode(into: &buffer)
        buffer.endEvent(startingAt: start)
    }
}

extension PacketBuffer {
    mutating func beginEvent(code: UInt8) -> Int {
        let start = count
        append(code)
        append(UInt8(0))
        return start
    }

    mutating func endEvent(startingAt start: Int) {
        truncate(to: start + 2 + 255)
        overwrite(at: start + 1, with: UInt8(truncatingIfNeeded: count - start - 2))
    }
}
