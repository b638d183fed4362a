import ArgumentParser
import BLE
import BLEHCI
import BluetoothTypes

struct Info: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "info",
        abstract: "Show what the controller is and can do."
    )

    @OptionGroup var options: GlobalOptions

    func run() async throws {
        let specification = try options.controller.specification()
        try await options.withAdapter { adapter in
            ControllerDescription(try await adapter.information, adapter: "\(specification)")
        } show: { (description: ControllerDescription) in
            if options.output.json {
                try Output.standard.json(description.json)
            } else {
                for line in description.lines { try Output.standard.line(line) }
            }
        }
    }
}

extension ControllerDescription {
    fileprivate init(_ information: ControllerInformation, adapter: String) {
        self.init(
            adapter: adapter,
            publicAddress: information.publicAddress,
            identityAddress: information.identityAddress,
            hciVersion: "\(CoreVersion(rawValue: information.hciVersion))",
            hciSubversion: information.hciSubversion,
            linkLayerVersion: "\(CoreVersion(rawValue: information.lmpVersion))",
            linkLayerSubversion: information.lmpSubversion,
            manufacturer: information.manufacturer,
            features: information.features.rawValue,
            aclDataLength: information.aclDataLength,
            aclPacketCount: information.aclPacketCount,
            usesExtendedCommands: information.usesExtendedCommands,
            advertisingSets: information.numberOfAdvertisingSets,
            advertisingDataLength: information.maximumAdvertisingDataLength,
            filterAcceptListSize: information.filterAcceptListSize,
            resolvingListSize: information.resolvingListSize,
            supportedStates: information.supportedStates
        )
    }
}
