import BluetoothHost
import BluetoothTypes
import Dispatch
import HCITransport
import Synchronization
import VirtualController

/// Controllers in this process, by the name of the air that they share.
enum VirtualAdapters {
    private static let airs = Mutex<[String: AirOnQueue]>([:])

    /// Makes controllers for a host on a loop.
    static func opener(on loop: DispatchEventLoop) -> @Sendable (_ name: String) -> any Transport {
        { name in
            let air = airs.withLock { airs in
                let air = airs[name] ?? AirOnQueue(name: name)
                airs[name] = air
                return air
            }
            return air.makeController(for: loop.queue)
        }
    }
}

/// An air on a queue of its own, in real time.
private final class AirOnQueue: @unchecked Sendable {
    private let queue: DispatchQueue
    private let air: Air
    private let timer: any DispatchSourceTimer
    private var count: UInt64 = 0

    init(name: String) {
        queue = DispatchQueue(label: "swift-ble.air.\(name)", qos: .userInitiated)
        air = Air(now: AirOnQueue.now)
        timer = DispatchSource.makeTimerSource(queue: queue)
        timer.setEventHandler { [unowned self] in run() }
        timer.schedule(deadline: .distantFuture)
        timer.activate()
    }

    private static var now: Instant { Instant(nanoseconds: DispatchTime.now().uptimeNanoseconds) }

    /// Makes a controller; what the transport returns is its host's end of HCI.
    func makeController(for hostQueue: DispatchQueue) -> any Transport {
        let (hostEnd, controllerEnd) = PipeTransport.makePair(hostQueue, queue)
        queue.async { [self] in
            count += 1
            let controller = VirtualController(
                configuration: .init(address: DeviceAddress(0x5642_4C45_0000 | count, isRandom: false)),
                air: air,
                random: SystemRandomNumberGenerator(),
                emit: { packet in controllerEnd.send(packet) }
            )
            let end = ControllerEnd(controller, controllerEnd)
            controllerEnd.start(
                onPacket: { [self] packet in
                    end.controller.receive(packet)
                    run()
                },
                onEnd: { [self] _ in
                    end.controller.vanish()
                    run()
                }
            )
        }
        return hostEnd
    }

    /// Keeps a controller and its end of the pipe alive; used on the air's queue only.
    private final class ControllerEnd: @unchecked Sendable {
        let controller: VirtualController
        let transport: PipeTransport

        init(_ controller: VirtualController, _ transport: PipeTransport) {
            self.controller = controller
            self.transport = transport
        }
    }

    /// Does what is due, and sets the timer for what is next.
    private func run() {
        air.advance(to: AirOnQueue.now)
        guard let due = air.nextDue else { return timer.schedule(deadline: .distantFuture) }
        timer.schedule(deadline: DispatchTime(uptimeNanoseconds: max(due.nanoseconds, 1)), leeway: .microseconds(100))
    }
}
