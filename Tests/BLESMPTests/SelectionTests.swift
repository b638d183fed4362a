import BLESMP
import Testing

/// A cell of table 2.8 (Vol 3, Part H, 2.3.5.1), with the models as the initiator sees them.
private struct Cell: Sendable, CustomTestStringConvertible {
    let initiator: IOCapability
    let responder: IOCapability
    let legacy: AssociationModel
    let secureConnections: AssociationModel

    var testDescription: String { "\(initiator) meets \(responder)" }
}

private let table: [Cell] = {
    /// The rows of the table are the responder's, in the order of the specification.
    let capabilities: [IOCapability] = [
        .displayOnly, .displayYesNo, .keyboardOnly, .noInputNoOutput, .keyboardDisplay,
    ]
    let (works, typed, shown) = (
        AssociationModel.justWorks, AssociationModel.passkeyTypedHere, AssociationModel.passkeyShownHere
    )
    let both = AssociationModel.passkeyTypedOnBoth
    let compared = AssociationModel.numericComparison
    let legacy: [[AssociationModel]] = [
        [works, works, typed, works, typed],
        [works, works, typed, works, typed],
        [shown, shown, both, works, shown],
        [works, works, works, works, works],
        [shown, shown, typed, works, shown],
    ]
    let secure: [[AssociationModel]] = [
        [works, works, typed, works, typed],
        [works, compared, typed, works, compared],
        [shown, shown, both, works, shown],
        [works, works, works, works, works],
        [shown, compared, typed, works, compared],
    ]
    return capabilities.indices.flatMap { row in
        capabilities.indices.map { column in
            Cell(
                initiator: capabilities[column],
                responder: capabilities[row],
                legacy: legacy[row][column],
                secureConnections: secure[row][column]
            )
        }
    }
}()

@Suite("The association model")
struct SelectionTests {
    private func models(_ cell: Cell, secure: Bool, authenticates: Bool) -> [AssociationModel?] {
        var (central, peripheral) = (PairingParameters(), PairingParameters())
        central.ioCapability = cell.initiator
        peripheral.ioCapability = cell.responder
        peripheral.offersSecureConnections = secure
        var meeting = Meeting(central: central, peripheral: peripheral)
        if !authenticates {
            // The request of devices without protection against a device in the middle.
            meeting.replacement = { number, pdu in
                var pdu = pdu
                if number < 2 { pdu[3] &= ~0x04 }
                return pdu
            }
        }
        meeting.pair()
        return [Channel.Role.central, .peripheral].map { role in
            for case (.consent(let model, _), role) in meeting.asked { return model }
            return nil
        }
    }

    private func mirrored(_ model: AssociationModel) -> AssociationModel {
        switch model {
        case .passkeyShownHere: .passkeyTypedHere
        case .passkeyTypedHere: .passkeyShownHere
        default: model
        }
    }

    /// Vol 3, Part H, table 2.8.
    @Test(arguments: table)
    fileprivate func associationModelFollowsTheTableOfCapabilities(cell: Cell) {
        #expect(models(cell, secure: false, authenticates: true) == [cell.legacy, mirrored(cell.legacy)])
        #expect(
            models(cell, secure: true, authenticates: true) == [
                cell.secureConnections, mirrored(cell.secureConnections),
            ]
        )
    }

    @Test(
        arguments: [
            (false, 0, 0, .justWorks), (false, 1, 0, .justWorks), (false, 0, 1, .justWorks), (false, 1, 1, .outOfBand),
            (true, 0, 0, .justWorks), (true, 1, 0, .outOfBand), (true, 0, 1, .outOfBand), (true, 1, 1, .outOfBand),
        ] as [(Bool, UInt8, UInt8, AssociationModel)]
    )
    func outOfBandNeedsDataOnBothSidesInLegacyAndOnOneInSecureConnections(
        secure: Bool,
        centralFlag: UInt8,
        peripheralFlag: UInt8,
        expected: AssociationModel
    ) throws {
        var device = Device(.peripheral)
        if secure {
            let method = try #require(
                Method.all.first { $0.description == "Secure Connections, out of band both ways" }
            )
            device.channel.parameters = method.peripheral
            if peripheralFlag == 0 { device.channel.parameters.peerOutOfBandData = nil }
        } else if peripheralFlag == 1 {
            device.channel.parameters.peerOutOfBandData = .temporaryKey(1)
        }
        let steps = device.receive([0x01, 0x03, centralFlag, secure ? 0x09 : 0x01, 0x10, 0x07, 0x07])
        guard case .ask(.consent(let model, _)) = steps.first else {
            Issue.record("no consent asked: \(steps)")
            return
        }
        #expect(model == expected)
        let answers = device.answer(.accept)
        guard case .send(let response) = answers.first else {
            Issue.record("no response: \(answers)")
            return
        }
        #expect(response[2] == peripheralFlag)
    }
}
