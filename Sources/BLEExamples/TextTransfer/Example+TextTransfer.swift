import Foundation

extension Example {
    /// A phone sends the text on its screen, in pieces, to each phone that subscribes to it.
    static let textTransfer = textTransfer(sending: demonstrationText)

    /// A phone sends a text.
    public static func textTransfer(sending text: String) -> Example {
        Example(
            name: "texttransfer",
            summary: "a phone sends a text in pieces of 20 bytes, and waits where there is no room",
            peripheral: Part(
                expected: ["Advertising", "Central subscribed", "Sent: ", "Envoyé: EOM", "Central unsubscribed"],
                open: { CBPeripheralViewController(text: text, terminal: $0, options: $1) }
            ),
            central: Part(
                expected: [
                    "La numérisation a commencé", "Découvert ", "Connexion au périphérique ", "Connected",
                    "Numérisation arrêtée", "La notification a commencé le ", "Texte: ", "Disconnected",
                    "La numérisation a commencé",
                ],
                open: { CBCentralManagerViewController(terminal: $0, options: $1) }
            )
        )
    }

    /// A text of several pieces, one of which ends within a character.
    static let demonstrationText =
        "Oh! l'été, la mer était déjà là; à Noël, où la forêt fût-elle? Nulle part: çà et là."
}

extension CBPeripheralViewController: Screen {
    func userReads(_ line: String) {}
}

extension CBCentralManagerViewController: Screen {
    func userReads(_ line: String) {}
}
