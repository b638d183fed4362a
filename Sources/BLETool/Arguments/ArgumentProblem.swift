/// What is wrong with an argument, on one line.
struct ArgumentProblem: Error, Equatable, CustomStringConvertible {
    let description: String

    init(_ description: String) {
        self.description = description
    }
}
