@_exported import class BLEHCITransport.CancellationToken
@_exported import struct BLEHCITransport.PacketRecording
@_exported import struct BLEHCITransport.ReplayDifference
@_exported import struct BLEVirtualController.ControllerFaults
@_exported import struct BLEVirtualController.Position
@_exported import struct BLEVirtualController.RadioConditions
@_exported import struct BLEVirtualController.SeededGenerator
