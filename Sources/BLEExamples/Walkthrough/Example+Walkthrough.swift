import Foundation

extension Example {
    /// The operations of each role, step by step, including steps that must fail.
    static let walkthrough = Example(
        name: "walkthrough",
        summary: "all that both roles can do, step by step, errors included",
        peripheral: Part(
            expected: [
                "CBPeripheralManagerStatePoweredOn",
                "Add Service 180D",
                "Add Service 3655296F-96CE-44D4-912D-CD83F06E7E7E",
                "Published characteristics: 2",
                "Start Advertising",
                "Request character 1 from 0",
                "Written character 1: 4 bytes",
                "Written character 1: 300 bytes",
                "Central subscribed to characteristic 632FB3C9-2078-419B-83AA-DBC64B5B685A",
                "Send Success ? YES",
                "Request character 2 from 0",
                "Central unsubscribed from characteristic 632FB3C9-2078-419B-83AA-DBC64B5B685A",
            ],
            open: { WalkthroughPeripheral(terminal: $0, options: $1) }
        ),
        central: Part(
            expected: [
                "CBCentralManagerStatePoweredOn",
                "Discover name : Walkthrough",
                "Advertised transmit power: (null)",
                "Scanning stop",
                "Peripheral Connected",
                "Discovered service 3655296F-96CE-44D4-912D-CD83F06E7E7E",
                "Included service 180D, heart rate ? YES",
                "Discovered characteristic 2A38",
                "Discovered characteristic C22D1ECA-0F78-463B-8C21-688A517D7D2B",
                "Discovered characteristic 632FB3C9-2078-419B-83AA-DBC64B5B685A",
                "Read what is included: Data = 1",
                "Read: Data = character 1",
                "Write with response: done",
                "Write without response where that is not supported: Data = test",
                "Write what is read-only: Error writing value: Writing is not permitted.",
                "Write a long value: done",
                "Read a long value: 300 bytes, as written",
                "Subscribe to what cannot notify: Error changing notification state: The request is not supported.",
                "Subscribe: notifying ? YES",
                "Receive a notification: some bytes",
                "Read it in full: 512 bytes",
                "Unsubscribe: notifying ? NO",
                "Peripheral Disconnected: (null)",
            ],
            open: { WalkthroughCentral(terminal: $0, options: $1) }
        )
    )
}

extension WalkthroughPeripheral: Screen {
    func userReads(_ line: String) {}
}

extension WalkthroughCentral: Screen {
    func userReads(_ line: String) {}
}
