/// Rows in columns of the necessary width, two spaces apart.
struct TextTable {
    var header: [String]
    var rows: [[String]]

    /// Returns the lines, each cut to `width` columns if it is given.
    func lines(width: Int? = nil) -> [String] {
        let all = [header] + rows
        let widths = header.indices.map { column in
            all.map { $0.indices.contains(column) ? $0[column].columns : 0 }.max() ?? 0
        }
        return all.map { row in
            var line = ""
            for (cell, width) in zip(row, widths) { line += cell.padded(to: width) + "  " }
            while line.last == " " { line.removeLast() }
            return width.map { line.fitted(to: $0) } ?? line
        }
    }
}
