/// An invalid argument, described in one line.
package struct ArgumentProblem: Error, Equatable, CustomStringConvertible {
    package let description: String

    package init(_ description: String) {
        self.description = description
    }
}
