"""The only error of this package: a code for programs, and a message with the fault, its place and the next step."""


class Refusal(Exception):
    def __init__(self, code: str, message: str, **fields):
        super().__init__(message)
        self.code = code
        self.message = message
        self.fields = fields

    def to_json(self) -> dict:
        return {"error": {"code": self.code, "message": self.message, "fields": self.fields}}


def is_out_of_memory(error: BaseException) -> bool:
    """CUDA has its own error class; the allocator of the CPU raises a RuntimeError, Python a MemoryError."""
    import torch

    if isinstance(error, (torch.cuda.OutOfMemoryError, MemoryError)):
        return True
    return isinstance(error, RuntimeError) and "allocate memory" in str(error)
