#ifndef CB_ATT_ERROR_CODE_H
#define CB_ATT_ERROR_CODE_H

// An error code of the Attribute Protocol (Vol 3, Part F, 3.4.1.1). Swift imports it as CBATTError.Code.
//
// The enumeration is declared in C because only an open enumeration of C can have values without a name: the codes of
// applications (0x80 to 0x9F) and of profiles (0xE0 to 0xFF). Core Bluetooth declares it in the same way on Apple's
// platforms, so a switch in an app compiles here as it does there.
typedef enum __attribute__((enum_extensibility(open))) CBATTErrorCode : long {
    CBATTErrorCodeSuccess = 0x00,
    CBATTErrorCodeInvalidHandle = 0x01,
    CBATTErrorCodeReadNotPermitted = 0x02,
    CBATTErrorCodeWriteNotPermitted = 0x03,
    CBATTErrorCodeInvalidPdu = 0x04,
    CBATTErrorCodeInsufficientAuthentication = 0x05,
    CBATTErrorCodeRequestNotSupported = 0x06,
    CBATTErrorCodeInvalidOffset = 0x07,
    CBATTErrorCodeInsufficientAuthorization = 0x08,
    CBATTErrorCodePrepareQueueFull = 0x09,
    CBATTErrorCodeAttributeNotFound = 0x0A,
    CBATTErrorCodeAttributeNotLong = 0x0B,
    CBATTErrorCodeInsufficientEncryptionKeySize = 0x0C,
    CBATTErrorCodeInvalidAttributeValueLength = 0x0D,
    CBATTErrorCodeUnlikelyError = 0x0E,
    CBATTErrorCodeInsufficientEncryption = 0x0F,
    CBATTErrorCodeUnsupportedGroupType = 0x10,
    CBATTErrorCodeInsufficientResources = 0x11,
} CBATTErrorCode;

#endif
