// swift-format-ignore-file: AlwaysUseLowerCamelCase

import Foundation

let TRANSFER_SERVICE_UUID = "C12B5848-1973-4AB6-8753-31C9585BCB29"
let TRANSFER_CHARACTERISTIC_UUID = "7926A327-37E3-49FA-865F-F3C582CB19CB"

/// Maximum number of bytes that a notification carries over any link.
let NOTIFY_MTU = 20
