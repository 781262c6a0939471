"""Equations: functions of tensors. No parameters, no modules."""
