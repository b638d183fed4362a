import Foundation
import Synchronization

/// What the system knows about this process, under the names that all of Prometheus's client libraries use.
final class ProcessMetrics: Sendable {
    /// The greatest change of the computed start time, in seconds, for which the last one is still reported. Two clocks
    /// are never read at the same moment, so it is slightly different each time.
    private static let startTimeTolerance = 1.0

    /// The time from the start of the system to that of the process, in seconds; nil if /proc is not readable.
    private let startSinceBoot: Double?
    private let systemTime: @Sendable () -> Double
    private let timeSinceBoot: @Sendable () -> Double
    private let lastStartTime = Mutex<Double?>(nil)

    /// - Parameters:
    ///   - systemTime: returns the system's time in seconds since 1970.
    ///   - timeSinceBoot: returns the time since the start of the system, in seconds.
    init(
        systemTime: @escaping @Sendable () -> Double = { Date().timeIntervalSince1970 },
        timeSinceBoot: @escaping @Sendable () -> Double = { ProcessMetrics.readTimeSinceBoot() }
    ) {
        self.systemTime = systemTime
        self.timeSinceBoot = timeSinceBoot
        startSinceBoot = Self.readStartSinceBoot()
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

    /// The system's time of the start in seconds since 1970; nil if /proc is not readable. It changes when the system's
    /// clock is set: a machine without a battery for its clock starts in the past.
    private var startTime: Double? {
        guard let startSinceBoot else { return nil }
        let computed = systemTime() - timeSinceBoot() + startSinceBoot
        return lastStartTime.withLock { last -> Double in
            if let last, abs(computed - last) <= Self.startTimeTolerance { return last }
            last = computed
            return computed
        }
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

    /// The time from the start of the system to that of the process, in seconds; see proc(5), /proc/pid/stat.
    private static func readStartSinceBoot() -> Double? {
        // The second field is a name in parentheses that can have spaces. The start is the 22nd field.
        guard let fields = read("/proc/self/stat")?.split(separator: ")").last?.split(separator: " "),
            fields.count > 19,
            let ticks = Double(fields[19])
        else { return nil }
        return ticks / Double(sysconf(Int32(_SC_CLK_TCK)))
    }

    /// The time since the start of the system, in seconds. A service may see nothing of /proc but its processes, so the
    /// time is that of the clock.
    private static func readTimeSinceBoot() -> Double {
        var time = timespec()
        clock_gettime(CLOCK_BOOTTIME, &time)
        return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
    }
}
