from edge_runtime.kv.prefix_key import PrefixKey
from edge_runtime.kv.prefix_store import PrefixStore
from edge_runtime.trace import Recorder, recording

KEY = PrefixKey("a" * 64, "tok", "build-1", "f16", "f16", flash_attn=False)


def test_lookups_and_puts_show_in_the_trace(tmp_path):
    store = PrefixStore(tmp_path, block_tokens=2)
    with recording(Recorder()) as recorder:
        store.put(KEY, [1, 2, 3, 4], [b"a", b"b"])
        store.lookup(KEY, [1, 2, 3])
    put, lookup = recorder.spans
    assert (put.name, put.n_tokens, put.notes["on_disk"]) == ("kv.put", 4, True)
    assert (lookup.name, lookup.n_tokens, lookup.notes["source"]) == ("kv.lookup", 2, "memory")
