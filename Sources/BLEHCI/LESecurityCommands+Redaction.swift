import BluetoothTypes

// Keys are not part of descriptions and reflections, so they cannot be logged by accident. Embedded Swift has no
// reflection.

#if !hasFeature(Embedded)
    extension LEEncrypt: CustomReflectable {
        public var customMirror: Mirror {
            Mirror(self, children: ["key": Redacted(), "plaintextData": Redacted()], displayStyle: .struct)
        }
    }

    extension LEEnableEncryption: CustomReflectable {
        public var customMirror: Mirror {
            Mirror(
                self,
                children: [
                    "connectionHandle": connectionHandle, "randomNumber": randomNumber,
                    "encryptedDiversifier": encryptedDiversifier, "longTermKey": Redacted(),
                ],
                displayStyle: .struct
            )
        }
    }

    extension LELongTermKeyRequestReply: CustomReflectable {
        public var customMirror: Mirror {
            Mirror(
                self,
                children: ["connectionHandle": connectionHandle, "longTermKey": Redacted()],
                displayStyle: .struct
            )
        }
    }

    extension LECreateBIG: CustomReflectable {
        public var customMirror: Mirror {
            Mirror(self, children: ["bigHandle": bigHandle, "broadcastCode": Redacted()], displayStyle: .struct)
        }
    }

    extension LEBIGCreateSync: CustomReflectable {
        public var customMirror: Mirror {
            Mirror(self, children: ["bigHandle": bigHandle, "broadcastCode": Redacted()], displayStyle: .struct)
        }
    }

    extension LEAddDeviceToResolvingList: CustomReflectable {
        public var customMirror: Mirror {
            Mirror(
                self,
                children: [
                    "peerIdentityAddress": peerIdentityAddress, "peerIRK": Redacted(), "localIRK": Redacted(),
                ],
                displayStyle: .struct
            )
        }
    }
#endif
