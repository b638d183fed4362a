import Glibc

/// The resources that a process has used since its start, with all its threads.
struct ProcessUsage: Equatable, Sendable {
    var processorMicroseconds: UInt64
    var contextSwitches: UInt64
    /// The memory of the process that is resident now.
    var residentKibibytes: UInt64
}

extension ProcessUsage {
    static var current: ProcessUsage {
        var usage = rusage()
        unsafe getrusage(RUSAGE_SELF.rawValue, &usage)
        let seconds = usage.ru_utime.tv_sec + usage.ru_stime.tv_sec
        let microseconds = usage.ru_utime.tv_usec + usage.ru_stime.tv_usec
        return ProcessUsage(
            processorMicroseconds: UInt64(seconds) * 1_000_000 + UInt64(microseconds),
            contextSwitches: UInt64(usage.ru_nvcsw + usage.ru_nivcsw),
            residentKibibytes: residentKibibytes
        )
    }

    /// 0 if there is no `/proc`.
    private static var residentKibibytes: UInt64 {
        guard let file = unsafe fopen("/proc/self/statm", "re") else { return 0 }
        defer { unsafe fclose(file) }
        var line = [UInt8](repeating: 0, count: 256)
        let count = unsafe fread(&line, 1, line.count, file)
        let fields = String(decoding: line.prefix(count), as: UTF8.self).split(separator: " ")
        let pages = fields.dropFirst().first.flatMap { UInt64($0) }
        return (pages ?? 0) * UInt64(sysconf(Int32(_SC_PAGESIZE))) / 1024
    }
}
