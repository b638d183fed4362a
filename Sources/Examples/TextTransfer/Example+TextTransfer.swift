import Foundation

extension Example {
    /// A phone sends the text that it shows, in pieces, to each that asks for it.
    static let textTransfer = Example(
        name: "texttransfer",
        summary: "a phone sends a text in pieces of 20 octets; who has got it asks again",
        peripheral: Part(
            expected: [
                "Advertising", "Central subscribed", "Sent: Oh! l'été", "Envoyé: EOM", "Central unsubscribed",
                "Central subscribed", "Envoyé: EOM", "Central unsubscribed",
            ],
            open: { CBPeripheralViewController(text: demonstrationText, terminal: $0, options: $1) }
        ),
        central: Part(
            expected: [
                "La numérisation a commencé", "Découvert ", "Connexion au périphérique ", "Connected",
                "Numérisation arrêtée", "La notification a commencé le ", "Texte: \(demonstrationText)", "Disconnected",
                "La numérisation a commencé", "Connected", "Texte: \(demonstrationText)", "Disconnected",
            ],
            open: { CBCentralManagerViewController(terminal: $0, options: $1) }
        )
    )

    /// What the phone shows, in more than one chunk, one of which ends within a character.
    static let demonstrationText =
        "Oh! l'été, la mer était déjà là; à Noël, où la forêt fût-elle? Nulle part: çà et là."
}

extension CBPeripheralViewController: Screen {
    func userReads(_ line: String) {}
}

extension CBCentralManagerViewController: Screen {
    func userReads(_ line: String) {}
}
