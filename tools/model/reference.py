"""Writes what src/embed is tested against: tokens by the reference tokenizer, vectors by the ONNX runtime.

    pip install numpy==2.4.6 onnx==1.23.2 onnxruntime==1.31.1 tokenizers==0.23.3
    python tools/model/reference.py FOLDER    # holds tokenizer.json and onnx/model.onnx of the package

The vectors are those of the packed weights in f32, so that they test the forward pass alone. The last lines
compare them with the original, whose activations have 8 bits.
"""

import pathlib
import struct
import sys

import numpy as np
import onnx
import onnxruntime
import tokenizers
from onnx import helper, numpy_helper

ROOT = pathlib.Path(__file__).parents[2]
PREFIX = "Represent this sentence for searching relevant passages: "
TEXTS = [
    "Login requests are limited to five per minute and address; further ones get status 429.",
    "how do we keep people from logging in too often",
    "",
    "x",
    "fn parse(bytes: &'a [u8]) -> Result<Self, InvalidModel> { /* TODO: #42 */ }",
    "Crème brûlée à la façade, Ångström, naïve Übergröße, ŁÓDŹ, İstanbul, Tiếng Việt, e\u0301te\u0301",
    "数据库迁移失败 because the 列 was NULL；テスト、データベース。한국어 텍스트",
    "Deploy 🚀 done ✅ 👩‍💻 ❤️ ☕ → ok",
    "tabs\tand\u00a0no-break\u2003em\u2028line\r\nspaces \u200b zero\u200bwidth bell\u0007bell soft\u00adhyphen \ufeffmark",
    "a" * 100 + " " + "b" * 101 + " antidisestablishmentarianism pneumonoultramicroscopicsilicovolcanoconiosis",
    "Сервер базы данных упал; ο διακομιστής; الخادم توقف; เซิร์ฟเวอร์ล่ม; השרת קרס",
    "src/main.rs:42: error[E0382]: use of moved value: `x_y` (see https://example.org/a?b=c&d=1#e)",
    "$100 + 50% = €150 ± 3 × 2 ÷ ½ ² ™ ® © § ¶ … – — « » “quoted” ‘single’ ¿qué? ¡no!",
    "camelCase snake_case kebab-case SCREAMING_CASE v1.2.3-rc.1 0xDEADBEEF 1e-12",
    " ".join(f"word{number}" for number in range(300)),
    "The memory leak came from event listeners that were never removed. " * 10,
]
QUERIES = [1]
VECTORS = [0, 1, 2, 4, 5, 8, 14, 15]


def packed():
    """The weights of the packed model as f32, by the names of the original."""
    data = (ROOT / "src/model/arctic-embed-s.bin").read_bytes()
    body = struct.unpack_from("<I", data, 12)[0]
    hidden, layers, wide, tokens_max, pieces = struct.unpack_from("<5I", data, 56)
    at = body

    def take(count, kind):
        nonlocal at
        at = (at + 63) // 64 * 64
        values = np.frombuffer(data, kind, count, at)
        at += values.nbytes
        return values

    text = take(2, "<u4")[1]
    take(pieces * 2, "<u4")
    take(text, "u1")
    nibbles = take(pieces * hidden // 2, "u1").reshape(-1, 16)
    scales = (take(pieces * hidden // 32, "<u2").astype(np.uint32) << 16).view(np.float32)
    values = np.concatenate([nibbles & 15, nibbles >> 4], axis=1).astype(np.float32) - 8
    weights = {"words": (values * scales[:, None]).reshape(pieces, hidden)}
    weights["positions"] = take(tokens_max * hidden, "<f4").reshape(tokens_max, hidden)
    norms, matrices = [], []

    def norm():
        norms.append((take(hidden, "<f4"), take(hidden, "<f4")))

    def linear(inputs, outputs):
        scales, biases = take(outputs, "<f4"), take(outputs, "<f4")
        panels = take(inputs * outputs, "i1").reshape(-1, inputs, 16)
        matrix = panels.transpose(1, 0, 2).reshape(inputs, outputs).astype(np.float32)
        matrices.append((matrix * scales, biases))

    norm()
    for _ in range(layers):
        linear(hidden, 3 * hidden)
        linear(hidden, hidden)
        norm()
        linear(hidden, wide)
        linear(wide, hidden)
        norm()
    assert at == len(data)
    return weights, norms, matrices


def with_floats(model):
    """The original graph with the packed weights and f32 products instead of 8-bit ones."""
    weights, norms, matrices = packed()
    graph = model.graph
    tensors = {tensor.name: tensor for tensor in graph.initializer}

    def replace(name, values):
        tensors[name] = numpy_helper.from_array(np.ascontiguousarray(values, np.float32), name)

    names = ["embeddings"]
    for layer in range(len(matrices) // 4):
        names += [f"encoder.layer.{layer}.attention.output", f"encoder.layer.{layer}.output"]
    for name, (scale, bias) in zip(names, norms, strict=True):
        replace(f"{name}.LayerNorm.weight", scale)
        replace(f"{name}.LayerNorm.bias", bias)
    floats = []
    for layer in range(len(matrices) // 4):
        (qkv, qkv_bias), *rest = matrices[4 * layer : 4 * layer + 4]
        parts = list(zip(np.split(qkv, 3, 1), np.split(qkv_bias, 3), strict=True)) + rest
        own = f"encoder.layer.{layer}"
        biases = [f"{own}.attention.self.{part}" for part in ("query", "key", "value")]
        biases += [f"{own}.attention.output.dense", f"{own}.intermediate.dense", f"{own}.output.dense"]
        for name, (matrix, bias) in zip(biases, parts, strict=True):
            replace(f"{name}.bias", bias)
            floats.append(matrix)
    producers = {output: node for node in graph.node for output in node.output}
    consumers = {name: node for node in graph.node for name in node.input}
    numbers = sorted(name for name in tensors if name.startswith("onnx::MatMul_") and name.endswith("_quantized"))
    nodes = []
    for node in graph.node:
        if node.op_type == "MatMulInteger":
            name = node.input[1]
            replace(f"{name}_f32", floats[numbers.index(name)])
            source = producers[node.input[0]].input[0]
            result = consumers[consumers[node.output[0]].output[0]].output[0]
            nodes.append(helper.make_node("MatMul", [source, f"{name}_f32"], [result]))
    made = {output for node in nodes for output in node.output}
    # Tables: the packed one for words; positions have the first segment added already.
    tables = {
        "embeddings.word_embeddings.weight": weights["words"],
        "embeddings.position_embeddings.weight": weights["positions"],
        "embeddings.token_type_embeddings.weight": np.zeros((2, weights["words"].shape[1])),
    }
    for name, table in tables.items():
        replace(f"{name}_f32", table)
    kept = []
    for node in graph.node:
        if node.op_type in ("MatMulInteger", "DynamicQuantizeLinear") or set(node.output) & made:
            continue
        if node.op_type == "DequantizeLinear":
            gather = producers[node.input[0]]
            name = gather.input[0].removesuffix("_quantized")
            kept.append(helper.make_node("Gather", [f"{name}_f32", gather.input[1]], list(node.output)))
        else:
            kept.append(node)
    # Sort nodes by their dependencies, and omit nodes that no other node needs.
    needed, order = {output.name for output in graph.output}, []
    by_output = {output: node for node in kept + nodes for output in node.output}
    done = set()

    def visit(name):
        stack = [(name, False)]
        while stack:
            name, ready = stack.pop()
            node = by_output.get(name)
            if node is None or id(node) in done:
                continue
            if ready:
                done.add(id(node))
                order.append(node)
            else:
                stack.append((name, True))
                stack.extend((source, False) for source in node.input)

    for name in sorted(needed):
        visit(name)
    used = {name for node in order for name in node.input}
    changed = helper.make_graph(
        order, "packed", graph.input, graph.output, [tensors[name] for name in sorted(used & tensors.keys())]
    )
    return helper.make_model(changed, opset_imports=model.opset_import, ir_version=model.ir_version)


def embed(session, tokens):
    tokens = np.array([tokens], np.int64)
    feeds = {"input_ids": tokens, "attention_mask": np.ones_like(tokens), "token_type_ids": np.zeros_like(tokens)}
    first = session.run(None, feeds)[0][0, 0].astype(np.float64)
    return first / np.linalg.norm(first)


def main():
    folder = pathlib.Path(sys.argv[1])
    tokenizer = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    texts = [PREFIX + text if number in QUERIES else text for number, text in enumerate(TEXTS)]
    tokens = [tokenizer.encode(text).ids for text in texts]
    with open(ROOT / "src/embed/reference/tokens.tsv", "w", encoding="utf-8") as out:
        for text, ids in zip(texts, tokens, strict=True):
            escaped = "".join(c if " " <= c <= "~" and c != "\\" else f"\\u{{{ord(c):x}}}" for c in text)
            out.write(f"{escaped}\t{' '.join(map(str, ids))}\n")
    original = onnx.load(folder / "onnx/model.onnx")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    floats = onnxruntime.InferenceSession(with_floats(original).SerializeToString(), options)
    quantized = onnxruntime.InferenceSession(str(folder / "onnx/model.onnx"), options)
    with open(ROOT / "src/embed/reference/vectors.f32", "wb") as out:
        for number in VECTORS:
            vector = embed(floats, tokens[number])
            out.write(vector.astype("<f4").tobytes())
            print(number, "cosine with the original", vector @ embed(quantized, tokens[number]))


main()
