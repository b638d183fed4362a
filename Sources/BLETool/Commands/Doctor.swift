import ArgumentParser
import BLEHCITransport

struct Doctor: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "doctor",
        abstract: "Find problems that prevent the use of Bluetooth, with solutions.",
        discussion: """
            Checks the controller that --adapter or BLE_ADAPTER names, or else hci0, which the other commands use too. \
            Problems of other adapters are warnings. A controller on a socket or a serial line is opened, and closed \
            again. The exit status is 0 if there is no problem.
            """
    )

    @OptionGroup var controller: AdapterOptions
    @OptionGroup var output: OutputOptions

    func run() async throws {
        var specification = controller.adapter
        if specification == nil, environment(AdapterSpecification.environmentVariable) != nil {
            specification = try controller.specification()
        }
        let opening = await specification?.probe()
        let diagnosis = Diagnosis(of: AdapterInventory.read(), for: specification, opening: opening)
        for finding in diagnosis.findings {
            if output.json {
                try Output.standard.json(finding.json)
            } else {
                for line in finding.lines { try Output.standard.line(line) }
            }
        }
        if diagnosis.problems > 0 { throw ToolError.findings(diagnosis.problems) }
    }
}
