// L2CAP channels: this host has none yet, and says so here alone.
import Foundation

private let channelsUnavailable = EngineError.core(.operationNotSupported)

extension HostCentral {
    func openChannel(
        _ psm: CBL2CAPPSM,
        to peripheral: UUID,
        _ completion: @escaping Completion<ChannelStreams>
    ) {
        shared.post { _, _ in completion(.failure(channelsUnavailable)) }
    }
}

extension HostPeripheral {
    func publishChannel(requiresEncryption: Bool, _ completion: @escaping Completion<CBL2CAPPSM>) {
        shared.post { _, _ in completion(.failure(channelsUnavailable)) }
    }

    func unpublishChannel(_ psm: CBL2CAPPSM, _ completion: @escaping Completion<Void>) {
        shared.post { _, _ in completion(.failure(channelsUnavailable)) }
    }
}
