import Foundation

/// What the system knows about this process, under the names that all of Prometheus's client libraries use.
struct ProcessMetrics {
    /// The system's time of the start in seconds since 1970; nil if /proc is not readable.
    private let startTime: Double?

    init() {
        startTime = Self.readStartTime()
    }

    var families: [MetricFamily] {
        var usage = rusage()
        getrusage(__rusage_who_t(RUSAGE_SELF.rawValue), &usage)
        let seconds = [usage.ru_utime, usage.ru_stime].map { Double($0.tv_sec) + Double($0.tv_usec) / 1e6 }
        var families = [
            MetricFamily(
                "process_cpu_seconds_total",
                .counter,
                "Total user and system CPU time spent in seconds.",
                seconds[0] + seconds[1]
            )
        ]
        if let (virtual, resident) = Self.readMemory() {
            families += [
                MetricFamily("process_virtual_memory_bytes", .gauge, "Virtual memory size in bytes.", virtual),
                MetricFamily("process_resident_memory_bytes", .gauge, "Resident memory size in bytes.", resident),
            ]
        }
        if let count = try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").count {
            families.append(MetricFamily("process_open_fds", .gauge, "Number of open file descriptors.", Double(count)))
        }
        var limit = rlimit()
        if getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 {
            families.append(
                MetricFamily(
                    "process_max_fds",
                    .gauge,
                    "Maximum number of open file descriptors.",
                    Double(limit.rlim_cur)
                )
            )
        }
        if let startTime {
            families.append(
                MetricFamily(
                    "process_start_time_seconds",
                    .gauge,
                    "Start time of the process since unix epoch in seconds.",
                    startTime
                )
            )
        }
        return families
    }

    private static func read(_ path: String) -> String? {
        FileManager.default.contents(atPath: path).map { String(decoding: $0, as: UTF8.self) }
    }

    /// The virtual and the resident memory in bytes; see proc(5), /proc/pid/statm.
    private static func readMemory() -> (virtual: Double, resident: Double)? {
        let pages = read("/proc/self/statm")?.split(separator: " ").prefix(2).compactMap { Double($0) }
        guard let pages, pages.count == 2 else { return nil }
        let size = Double(sysconf(Int32(_SC_PAGESIZE)))
        return (pages[0] * size, pages[1] * size)
    }

    /// The start in seconds since 1970; see proc(5), /proc/pid/stat. A service may see nothing of /proc but its processes, so
    /// the time of the system's start is that of its clock.
    private static func readStartTime() -> Double? {
        // The second field is a name in parentheses that can have spaces. The start is the 22nd field.
        guard let fields = read("/proc/self/stat")?.split(separator: ")").last?.split(separator: " "),
            fields.count > 19,
            let ticks = Double(fields[19])
        else { return nil }
        var sinceBoot = timespec()
        clock_gettime(CLOCK_BOOTTIME, &sinceBoot)
        let bootTime = Date().timeIntervalSince1970 - Double(sinceBoot.tv_sec) - Double(sinceBoot.tv_nsec) / 1e9
        return bootTime + ticks / Double(sysconf(Int32(_SC_CLK_TCK)))
    }
}
