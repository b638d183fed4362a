/// The opcode of an ATT PDU (Vol 3, Part F, 3.4.8). Bit 6 marks commands, bit 7 signed ones.
public enum ATTOpcode: UInt8, Sendable, CaseIterable {
    /// ``ErrorResponse`` (3.4.1.1).
    case errorResponse = 0x01
    /// ``ExchangeMTURequest`` (3.4.2.1).
    case exchangeMTURequest = 0x02
    /// ``ExchangeMTUResponse`` (3.4.2.2).
    case exchangeMTUResponse = 0x03
    /// ``FindInformationRequest`` (3.4.3.1).
    case findInformationRequest = 0x04
    /// ``FindInformationResponse`` (3.4.3.2).
    case findInformationResponse = 0x05
    /// ``FindByTypeValueRequest`` (3.4.3.3).
    case findByTypeValueRequest = 0x06
    /// ``FindByTypeValueResponse`` (3.4.3.4).
    case findByTypeValueResponse = 0x07
    /// ``ReadByTypeRequest`` (3.4.4.1).
    case readByTypeRequest = 0x08
    /// ``ReadByTypeResponse`` (3.4.4.2).
    case readByTypeResponse = 0x09
    /// ``ReadRequest`` (3.4.4.3).
    case readRequest = 0x0A
    /// ``ReadResponse`` (3.4.4.4).
    case readResponse = 0x0B
    /// ``ReadBlobRequest`` (3.4.4.5).
    case readBlobRequest = 0x0C
    /// ``ReadBlobResponse`` (3.4.4.6).
    case readBlobResponse = 0x0D
    /// ``ReadMultipleRequest`` (3.4.4.7).
    case readMultipleRequest = 0x0E
    /// ``ReadMultipleResponse`` (3.4.4.8).
    case readMultipleResponse = 0x0F
    /// ``ReadByGroupTypeRequest`` (3.4.4.9).
    case readByGroupTypeRequest = 0x10
    /// ``ReadByGroupTypeResponse`` (3.4.4.10).
    case readByGroupTypeResponse = 0x11
    /// ``WriteRequest`` (3.4.5.1).
    case writeRequest = 0x12
    /// ``WriteResponse`` (3.4.5.2).
    case writeResponse = 0x13
    /// ``PrepareWriteRequest`` (3.4.6.1).
    case prepareWriteRequest = 0x16
    /// ``PrepareWriteResponse`` (3.4.6.2).
    case prepareWriteResponse = 0x17
    /// ``ExecuteWriteRequest`` (3.4.6.3).
    case executeWriteRequest = 0x18
    /// ``ExecuteWriteResponse`` (3.4.6.4).
    case executeWriteResponse = 0x19
    /// ``HandleValueNotification`` (3.4.7.1).
    case handleValueNotification = 0x1B
    /// ``HandleValueIndication`` (3.4.7.2).
    case handleValueIndication = 0x1D
    /// ``HandleValueConfirmation`` (3.4.7.3).
    case handleValueConfirmation = 0x1E
    /// ``ReadMultipleVariableRequest`` (3.4.4.11).
    case readMultipleVariableRequest = 0x20
    /// ``ReadMultipleVariableResponse`` (3.4.4.12).
    case readMultipleVariableResponse = 0x21
    /// ``MultipleHandleValueNotification`` (3.4.7.4).
    case multipleHandleValueNotification = 0x23
    /// ``WriteCommand`` (3.4.5.3).
    case writeCommand = 0x52
    /// ``SignedWriteCommand`` (3.4.5.4).
    case signedWriteCommand = 0xD2

    /// The kind of a PDU (Vol 3, Part F, 3.3).
    public enum Kind: Sendable {
        /// From client to server; a response follows.
        case request
        /// From server to client, in answer to a request.
        case response
        /// From client to server, without a response.
        case command
        /// From server to client, without a confirmation.
        case notification
        /// From server to client; a confirmation follows.
        case indication
        /// From client to server, in answer to an indication.
        case confirmation
    }

    /// The kind of PDUs with this opcode.
    @inlinable
    public var kind: Kind {
        switch self {
        case .exchangeMTURequest, .findInformationRequest, .findByTypeValueRequest, .readByTypeRequest, .readRequest,
            .readBlobRequest, .readMultipleRequest, .readByGroupTypeRequest, .writeRequest, .prepareWriteRequest,
            .executeWriteRequest, .readMultipleVariableRequest:
            .request
        case .errorResponse, .exchangeMTUResponse, .findInformationResponse, .findByTypeValueResponse,
            .readByTypeResponse, .readResponse, .readBlobResponse, .readMultipleResponse, .readByGroupTypeResponse,
            .writeResponse, .prepareWriteResponse, .executeWriteResponse, .readMultipleVariableResponse:
            .response
        case .writeCommand, .signedWriteCommand: .command
        case .handleValueNotification, .multipleHandleValueNotification: .notification
        case .handleValueIndication: .indication
        case .handleValueConfirmation: .confirmation
        }
    }

    /// The response to a request; nil if the PDU is not a request.
    ///
    /// Each request's response has the opcode after it (Vol 3, Part F, 3.4.8).
    @inlinable
    public var response: ATTOpcode? {
        kind == .request ? ATTOpcode(rawValue: rawValue + 1) : nil
    }
}
