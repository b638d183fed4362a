/// Sends a value, or its first ATT_MTU - 3 bytes, without a confirmation (Vol 3, Part F, 3.4.7.1).
public typealias HandleValueNotification = HandleValuePDU<HandleValueNotificationKind>

/// The kind of a ``HandleValueNotification``.
public enum HandleValueNotificationKind: PDUKind {
    @inlinable
    public static var opcode: ATTOpcode { .handleValueNotification }
}

/// Sends a value, or its first ATT_MTU - 3 bytes, and requests a confirmation (Vol 3, Part F, 3.4.7.2).
public typealias HandleValueIndication = HandleValuePDU<HandleValueIndicationKind>

/// The kind of a ``HandleValueIndication``.
public enum HandleValueIndicationKind: PDUKind {
    @inlinable
    public static var opcode: ATTOpcode { .handleValueIndication }
}

/// Confirms an indication (Vol 3, Part F, 3.4.7.3).
public typealias HandleValueConfirmation = PDUWithoutParameters<HandleValueConfirmationKind>

/// The kind of a ``HandleValueConfirmation``.
public enum HandleValueConfirmationKind: PDUKind {
    @inlinable
    public static var opcode: ATTOpcode { .handleValueConfirmation }
}
