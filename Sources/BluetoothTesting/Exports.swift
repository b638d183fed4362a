@_exported import struct VirtualController.ControllerFaults
@_exported import struct VirtualController.Position
@_exported import struct VirtualController.RadioConditions
@_exported import struct VirtualController.SeededGenerator
