"""What attributes, log values and message parts hold, in whatever form: arguments, results, messages, tool definitions.

The same content comes as JSON text, as structured values or as a Python repr, whichever convention carries it; adapters
say where it is, join looks into it once more.
"""
