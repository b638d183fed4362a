/// What is wrong with an argument, on one line.
package struct ArgumentProblem: Error, Equatable, CustomStringConvertible {
    package let description: String

    package init(_ description: String) {
        self.description = description
    }
}
