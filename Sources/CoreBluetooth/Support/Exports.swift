// Apps that import Core Bluetooth alone use these modules through it, as Apple's framework lets them.
@_exported import CoreFoundation
@_exported import Dispatch
@_exported import Foundation
