extension FleetWindow {
    /// A message that an earlier engine took.
    public struct Restored: Sendable {
        /// The message.
        public var message: FleetMessage
        /// The token that comes back in the observation.
        public var token: UInt64
        /// Whether nothing is to be done for the message any more.
        public var isFinished: Bool
        /// The time since its arrival. If it is negative, because the clock was set back, the time is not known, and
        /// the transmission of a finished message is not remembered.
        public var age: Duration

        /// Creates a message.
        public init(_ message: FleetMessage, token: UInt64, isFinished: Bool, age: Duration) {
            self.message = message
            self.token = token
            self.isFinished = isFinished
            self.age = age
        }
    }
}
