import ByteCoding

extension BTSnoopRecord {
    /// Which adapter the packet belongs to: the kernel's index in a recording of the monitor channel, else zero.
    public func adapterIndex(in dataLink: BTSnoopHeader.DataLink) -> UInt16 {
        dataLink == .linuxMonitor ? UInt16(truncatingIfNeeded: flags >> 16) : 0
    }

    /// What the record holds, read as the file's data link says.
    ///
    /// - Throws: for a data link that is not known, and for an H4 record without a known indicator.
    @_lifetime(copy self)
    public func content(in dataLink: BTSnoopHeader.DataLink) throws(PacketDecodingError) -> CapturedContent {
        switch dataLink {
        case .hciUART:
            var reader = ByteReader(packet)
            let indicator = try reader.readUInt8()
            guard let kind = CapturedPacketKind(rawValue: indicator) else {
                throw .invalidValue(UInt64(indicator), field: "HCI packet indicator")
            }
            return .packet(kind, CaptureDirection(direction), bytes: reader.readRemaining())
        case .hciUnencapsulated:
            // Synchronous and ISO data cannot be told from ACL data here.
            let kind: CapturedPacketKind =
                switch (isCommandOrEvent, direction) {
                case (true, .hostToController): .command
                case (true, .controllerToHost): .event
                case (false, _): .acl
                }
            return .packet(kind, CaptureDirection(direction), bytes: packet)
        case .linuxMonitor:
            return monitorContent
        default:
            throw .invalidValue(UInt64(dataLink.rawValue), field: "btsnoop data link")
        }
    }

    private var monitorContent: CapturedContent {
        @_lifetime(copy self)
        get {
            let opcode = UInt16(truncatingIfNeeded: flags)
            return switch opcode {
            case 2: .packet(.command, .hostToController, bytes: packet)
            case 3: .packet(.event, .controllerToHost, bytes: packet)
            case 4: .packet(.acl, .hostToController, bytes: packet)
            case 5: .packet(.acl, .controllerToHost, bytes: packet)
            case 6: .packet(.synchronous, .hostToController, bytes: packet)
            case 7: .packet(.synchronous, .controllerToHost, bytes: packet)
            case 18: .packet(.iso, .hostToController, bytes: packet)
            case 19: .packet(.iso, .controllerToHost, bytes: packet)
            default: .note(opcode, bytes: packet)
            }
        }
    }
}

extension CaptureDirection {
    fileprivate init(_ direction: BTSnoopRecord.Direction) {
        self =
            switch direction {
            case .hostToController: .hostToController
            case .controllerToHost: .controllerToHost
            }
    }
}
