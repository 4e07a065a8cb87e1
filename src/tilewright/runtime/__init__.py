"""Devices, sessions, and what a run measured."""

from .device import INTERVAL, Device
from .discovery import DeviceInfo, list_devices, open_device
from .record import RunRecord
from .session import Session

__all__ = ["INTERVAL", "Device", "DeviceInfo", "RunRecord", "Session", "list_devices", "open_device"]
