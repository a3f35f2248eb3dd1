"""Values and messages of AMQP 1.0: the types of its type system, their bytes, and messages as slices of sections."""
