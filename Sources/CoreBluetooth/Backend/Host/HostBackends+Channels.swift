import BLEL2CAP
import BluetoothHost
import Foundation

extension HostCentral {
    func openChannel(
        _ psm: CBL2CAPPSM,
        to peripheral: ConnectedPeripheral,
        _ completion: @escaping Completion<ChannelStreams>
    ) {
        onLink(of: peripheral, completion) { host, link in
            do throws(HostError) {
                _ = try host.beginOpeningChannel(to: SPSM(rawValue: psm), on: link) { result in
                    switch result {
                    case .success(let channel):
                        let (streams, handler) = ChannelStreams.make(channel, of: host)
                        completion(.success(streams))
                        return handler
                    case .failure(let error):
                        self.answer(.failure(error), completion)
                        return nil
                    }
                }
            } catch {
                self.answer(.failure(error), completion)
            }
        }
    }
}

extension HostPeripheral {
    func publishChannel(requiresEncryption: Bool, _ completion: @escaping Completion<CBL2CAPPSM>) {
        submit(completion) { host, _ in
            let service = SPSMRegistry.Service(security: .init(needsEncryption: requiresEncryption))
            do throws(HostError) {
                let psm = try host.publishChannels(service) { [weak self, unowned host] channel in
                    let (streams, handler) = ChannelStreams.make(channel, of: host)
                    self?.accepted(channel, streams)
                    return handler
                }
                self.state.channelServices.insert(psm.rawValue)
                completion(.success(psm.rawValue))
            } catch {
                completion(.failure(BackendError(error)))
            }
        }
    }

    private func accepted(_ channel: OpenedChannel, _ streams: ChannelStreams) {
        open?.host.assumeIsolated { host in
            guard let central = remote(on: channel.identifier.link, host) else { return }
            // A channel that the manager does not take ends, because its streams are released.
            deliver(.channelOpened(central, channel.psm.rawValue, .success(streams)))
        }
    }

    func unpublishChannel(_ psm: CBL2CAPPSM, _ completion: @escaping Completion<Void>) {
        submit(completion) { host, _ in
            guard self.state.channelServices.remove(psm) != nil else {
                return completion(.failure(.core(.invalidParameters)))
            }
            host.unpublishChannels(at: SPSM(rawValue: psm))
            completion(.success(()))
        }
    }

    func unpublishAllChannels() {
        // The manager makes this call, not the app.
        submit(call: nil) { host, _ in self.endChannelServices(on: host) }
    }

    func endChannelServices(on host: isolated BluetoothHost) {
        for psm in state.channelServices { host.unpublishChannels(at: SPSM(rawValue: psm)) }
        state.channelServices = []
    }
}
