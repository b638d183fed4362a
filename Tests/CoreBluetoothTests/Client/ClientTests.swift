import CoreBluetooth
import Testing

@Suite("Source code written for Apple's framework")
struct ClientTests {
    /// The socket of a controller in a folder that does not exist.
    private static let missingAdapter = "unix:/nonexistent/controller"

    private func fail(_ error: any Error) throws { throw error }

    @Test("Errors are caught, cast and matched")
    func errorsAreCaughtCastAndMatched() throws {
        let error: Error = CBError(.connectionTimeout)
        #expect((error as? CBError)?.code == .connectionTimeout)
        #expect((error as? CBATTError) == nil)
        #expect((error as NSError).domain == CBErrorDomain)
        #expect((error as NSError).code == CBError.connectionTimeout.rawValue)
        #expect((error as NSError).code == 6)
        if case CBError.connectionTimeout = error {} else { Issue.record("not matched") }
        do {
            try fail(error)
        } catch CBError.peripheralDisconnected {
            Issue.record("another error")
        } catch CBError.connectionTimeout {
        } catch {
            Issue.record("not caught")
        }
        do {
            try fail(CBATTError(.insufficientAuthentication, userInfo: [NSLocalizedDescriptionKey: "pair first"]))
        } catch let error as CBATTError where error.code == .insufficientAuthentication {
            #expect(error.localizedDescription == "pair first")
            #expect(error.errorCode == 5)
            #expect(error.userInfo[NSLocalizedDescriptionKey] as? String == "pair first")
        }
    }

    @Test("A switch over an error code needs only the named cases", arguments: [0x00, 0x05, 0x11, 0x80, 0xFF])
    func switchOverAnErrorCodeNeedsOnlyTheNamedCases(rawValue: Int) {
        func name(_ code: CBATTError.Code) -> String {
            switch code {
            case .success: "success"
            case .insufficientAuthentication, .insufficientEncryption: "pair"
            case .invalidHandle, .readNotPermitted, .writeNotPermitted, .invalidPdu, .requestNotSupported,
                .invalidOffset, .insufficientAuthorization, .prepareQueueFull, .attributeNotFound, .attributeNotLong,
                .insufficientEncryptionKeySize, .invalidAttributeValueLength, .unlikelyError, .unsupportedGroupType,
                .insufficientResources:
                "other"
            @unknown default: "application"
            }
        }
        let expected = [0x00: "success", 0x05: "pair", 0x11: "other"][rawValue] ?? "application"
        #expect(name(CBATTError.Code(rawValue: rawValue)!) == expected)
    }

    @Test("Switches over states compile with and without an unknown default", arguments: 0...5)
    func switchOverStatesCompilesWithAnUnknownDefault(rawValue: Int) throws {
        let state = try #require(CBManagerState(rawValue: rawValue))
        let isOn =
            switch state {
            case .poweredOn: true
            case .unknown, .resetting, .unsupported, .unauthorized, .poweredOff: false
            @unknown default: false
            }
        #expect(isOn == (rawValue == 5))
    }

    @Test("Advertisement dictionaries can be read with Swift's and Foundation's types")
    func dictionariesAreReadWithTypesOfSwiftAndFoundation() {
        let data: [String: Any] = [
            CBAdvertisementDataServiceUUIDsKey: [heartRateService],
            CBAdvertisementDataServiceDataKey: [heartRateService: Data([1, 2])],
            CBAdvertisementDataIsConnectable: NSNumber(value: true),
            CBAdvertisementDataLocalNameKey: "Polar",
        ]
        #expect((data[CBAdvertisementDataServiceUUIDsKey] as? [CBUUID])?.contains(CBUUID(string: "180d")) == true)
        #expect((data[CBAdvertisementDataServiceUUIDsKey] as? NSArray)?.firstObject as? CBUUID == heartRateService)
        let serviceData = data[CBAdvertisementDataServiceDataKey] as? [CBUUID: Data]
        #expect(serviceData?[CBUUID(string: "0000180D-0000-1000-8000-00805F9B34FB")] == Data([1, 2]))
        #expect((data[CBAdvertisementDataServiceDataKey] as? NSDictionary)?[heartRateService] as? NSData != nil)
        #expect(data[CBAdvertisementDataIsConnectable] as? Bool == true)
        #expect((data[CBAdvertisementDataIsConnectable] as? NSNumber)?.boolValue == true)
        #expect(data[CBAdvertisementDataLocalNameKey] as? NSString == "Polar")
    }

    @Test("Without a host the one callback reports that, on a concurrent queue as well")
    func oneCallbackReportsThatThereIsNoHost() async {
        #expect(await Scanner().state(of: Self.missingAdapter) == .unsupported)
        #expect(CBManager.authorization == .allowedAlways)
    }

    @Test("One import makes the types beyond Apple's API available")
    func oneImportMakesTheTypesBeyondAppleAvailable() {
        let types: [Any.Type] = [
            CBAdapterEvent.self, CBSecurityEvent.self, CBSecurityError.self, CBPairingResult.self, CBKeypress.self,
            SecurityPolicy.self, PairingInquiry.self, Events<CBSecurityEvent>.self,
        ]
        #expect(types.count == 8)
    }

    @Test("A view model on the main actor is called on the main actor")
    @MainActor
    func viewModelOnTheMainActorIsCalledThere() async {
        let model = ViewModel()
        let options = [CBCentralManagerOptionAdapterKey: Self.missingAdapter]
        let manager = CBCentralManager(delegate: model, queue: nil, options: options)
        #expect(manager.state == .unknown)
        while model.states.isEmpty { await Task.yield() }
        #expect(model.states == [.unsupported])
        #expect(manager.state == .unsupported)
    }

    @Test("A service is built by appending, and appending to nil descriptors does nothing")
    func publishedTreeIsBuiltByAppending() throws {
        let service = PeripheralApp.makeService()
        let characteristics = try #require(service.characteristics)
        #expect(characteristics.count == 2)
        #expect(characteristics.allSatisfy { $0.service === service && $0.descriptors == nil })
        #expect(characteristics.first?.value == Data("Linux".utf8))
    }
}
