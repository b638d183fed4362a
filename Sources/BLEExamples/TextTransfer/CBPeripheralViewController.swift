import CoreBluetooth
import Foundation

class CBPeripheralViewController: NSObject, CBPeripheralManagerDelegate, TerminalApp {
    var peripheralManager: CBPeripheralManager!
    var transferCharacteristic: CBMutableCharacteristic!
    var dataToSend = Data()
    var sendDataIndex = 0
    var sendingEOM = false

    let terminal: any Terminal
    /// The contents of the text view.
    var text: String

    init(text: String, terminal: any Terminal, options: [String: Any] = [:]) {
        self.text = text
        self.terminal = terminal
        super.init()
        peripheralManager = CBPeripheralManager(delegate: self, queue: nil, options: options)
    }

    func viewWillDisappear() {
        peripheralManager.stopAdvertising()
    }

    func peripheralManagerDidUpdateState(_ peripheral: CBPeripheralManager) {
        if peripheral.state != .poweredOn {
            return
        }

        transferCharacteristic = CBMutableCharacteristic(
            type: CBUUID(string: TRANSFER_CHARACTERISTIC_UUID),
            properties: .notify,
            value: nil,
            permissions: .readable
        )

        let transferService = CBMutableService(type: CBUUID(string: TRANSFER_SERVICE_UUID), primary: true)
        transferService.characteristics = [transferCharacteristic]
        peripheralManager.add(transferService)

        // Only a manager that is powered on advertises.
        peripheralManager.startAdvertising([
            CBAdvertisementDataServiceUUIDsKey: [CBUUID(string: TRANSFER_SERVICE_UUID)]
        ])
    }

    func peripheralManager(_ peripheral: CBPeripheralManager, didAdd service: CBService, error: Error?) {
        if let error {
            print("Erreur: \(error.localizedDescription)")
        }
    }

    func peripheralManagerDidStartAdvertising(_ peripheral: CBPeripheralManager, error: Error?) {
        print(error.map { "Erreur: \($0.localizedDescription)" } ?? "Advertising")
    }

    func peripheralManager(
        _ peripheral: CBPeripheralManager,
        central: CBCentral,
        didSubscribeTo characteristic: CBCharacteristic
    ) {
        print("Central subscribed")
        dataToSend = text.data(using: .utf8) ?? Data()
        sendDataIndex = 0
        // If a central left before its EOM, the next central must not receive it.
        sendingEOM = false

        sendData()
    }

    func peripheralManager(
        _ peripheral: CBPeripheralManager,
        central: CBCentral,
        didUnsubscribeFrom characteristic: CBCharacteristic
    ) {
        print("Central unsubscribed")
    }

    func sendData() {
        // fin du message?
        if sendingEOM {
            let didSend = peripheralManager.updateValue(
                Data("EOM".utf8),
                for: transferCharacteristic,
                onSubscribedCentrals: nil
            )

            if didSend {
                // Si, alors marquez-le comme envoyé
                sendingEOM = false
                print("Envoyé: EOM")
            }
            // n'a pas envoyé. Nous allons donc quitter et attendre que peripheralManagerIsReady appelle à nouveau
            // sendData
            return
        }

        // Nous envoyons des données
        // Reste-t-il des données à envoyer?
        if sendDataIndex >= dataToSend.count {
            // Il ne reste aucune donnée. Ne rien faire
            return
        }

        // Il reste des données, donc envoyez jusqu'à ce que le rappel échoue ou que nous ayons terminé.
        var didSend = true

        while didSend {
            // Déterminez sa taille. Ne peut pas dépasser 20 octets
            let amountToSend = min(dataToSend.count - sendDataIndex, NOTIFY_MTU)

            // Copie les données souhaitées.
            let chunk = dataToSend.subdata(in: sendDataIndex..<sendDataIndex + amountToSend)

            didSend = peripheralManager.updateValue(chunk, for: transferCharacteristic, onSubscribedCentrals: nil)

            // Si cela ne fonctionne pas, abandonne le processus et attend le rappel
            if !didSend {
                return
            }

            print("Sent: \(String(data: chunk, encoding: .utf8) ?? "(null)")")

            // Il a été envoyé, alors mettez à jour notre index
            sendDataIndex += amountToSend

            // Était-ce le dernier?
            if sendDataIndex >= dataToSend.count {
                // Définissez cette option pour que, si l'envoi échoue, nous l'enverrons la prochaine fois
                sendingEOM = true

                let eomSent = peripheralManager.updateValue(
                    Data("EOM".utf8),
                    for: transferCharacteristic,
                    onSubscribedCentrals: nil
                )

                if eomSent {
                    // Il a été envoyé, nous avons tous terminé
                    sendingEOM = false
                    print("Envoyé: EOM")
                }

                return
            }
        }
    }

    func peripheralManagerIsReady(toUpdateSubscribers peripheral: CBPeripheralManager) {
        sendData()
    }
}
