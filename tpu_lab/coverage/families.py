"""The families operators are grouped by: those of the files their lowerings stand in, under the names people use."""

from __future__ import annotations

import re

_FILES = {
    "pointwise": "activation activation_backward binary unary comparison special_unary bessel orthogonal_polynomials complex division copying",
    "reduction": "reduction vector_norm statistics extremum order_statistic scan segments histogram",
    "matmul": "matmul grouped_matmul distance",
    "convolution": "convolution convolution_maps",
    "normalisation": "batch_normalization normalization softmax",
    "index, scatter": "indexing scatter embedding masks",
    "sort, search": "sorting",
    "linear algebra": "linalg linalg_ldl linalg_matrix_exp linalg_orthogonal",
    "FFT": "fft",
    "attention": "attention attention_multi_head recurrent",
    "resize, pool": "resize resample pooling pooling_adaptive grid_sample vision padding",
    "random": "random random_rejection rng",
    "loss": "loss loss_classification loss_ctc",
    "list, optimizer": "foreach fused_optimizer",
    "shape, view": "shape view view_scatter strided axes",
    "make, copy": "factory",
    "quantized": "quantize quantize_decomposed",
}
_NAMES: tuple[tuple[str, str], ...] = (
    ("sparse, nested, vendor", r"sparse|_coo_|csr|csc|bsr|spdiags|sspaddmm|coalesce|_indices$|^_?indices|^_?values|_dimI|_dimV|_nnz|nested|jagged"),
    ("sparse, nested, vendor", r"mkldnn|cudnn|miopen|fbgemm|_mps|mps_|_cslt"),
    ("quantized", r"quant|^q_|qscheme|qparams|int_repr|int4pack|int8pack|_fq_helper"),
    ("list, optimizer", r"^_?foreach|^_amp|^_fused_(adam|sgd|adagrad)"),
    ("FFT", r"fft|stft"),
    ("linear algebra", r"linalg|svd|^qr|cholesky|^lu|^_lu|inverse|^det|logdet"),
    ("linear algebra", r"slogdet|pinverse|matrix_|lstsq|triangular|ormqr|orgqr|geqrf|chain_matmul"),
    ("attention", r"attention|lstm|gru|rnn|transformer"),
    ("convolution", r"conv|_unfold2d|im2col|col2im"),
    ("normalisation", r"norm(alize)?($|_|\.)|softmax|layer_norm|batch_norm|dropout"),
    ("loss", r"loss|cross_entropy|kl_div"),
    ("resize, pool", r"pool|upsample|interpolate|grid_sampl|affine_grid|pixel_|channel_shuffle|pad"),
    ("random", r"rand|bernoulli|multinomial|normal_|uniform_|cauchy|exponential_|geometric_|poisson|philox|dirichlet|rrelu"),
    ("sort, search", r"sort|topk|kthvalue|searchsorted|bucketize|unique|msort"),
    ("index, scatter", r"index|scatter|gather|take|masked|embedding|put|nonzero|where|one_hot"),
    ("matmul", r"matmul|^_?(add|ba)?d?d?b?mm|addmv|addr|^dot|vdot|outer|inner|tensordot|einsum|kron|linear|^mv|^ger|mm(\.|_|$)|cdist|pdist|^cross"),
    ("reduction", r"sum|prod|mean|std|var|^max|^min|amax|amin|argmax|argmin|^all"),
    ("reduction", r"^any|median|mode|hist|bincount|quantile|cum|trace|trapz|trapezoid|^cov|^corr"),
    ("shape, view", r"view|reshape|permute|transpose|squeeze|expand|split|chunk|cat|stack"),
    ("shape, view", r"flip|roll|rot90|tile|repeat|unbind|narrow|select|slice|diag|unfold"),
    ("shape, view", r"movedim|moveaxis|swap|^t$|^t_|numpy_T|mT|mH|adjoint|alias"),
    ("shape, view", r"detach|as_strided|ravel|flatten|tri[lu]|lift|fold|resolve|^resize|^set_?|broadcast"),
    ("make, copy", r"empty|zeros|ones|full|arange|linspace|logspace|eye|range|window"),
    ("make, copy", r"copy|clone|^to|_to_|fill|scalar_tensor|zero|meshgrid|vander|combinations"),
    ("reduction", r"segment|norm"),
    ("other", r"^_assert|^_functional_assert|_test_|_foobar|^_debug|_version|^is_|^_is"),
    ("other", r"^size$|^stride$|^numel|^sym_|_dim$|^dim$|^output_nr|^data$|^storage_offset"),
    ("other", r"^_(batch|add_batch|remove_batch)|dual|primal|^_print|^_make_dep"),
    ("other", r"^_propagate|^record_stream|^retain|^requires_grad|^rename|names|^refine|^align"),
    ("other", r"^_(nnpack|shape_as|pin_memory|use_c|has_same|fused_sdp|efficientzero|rowwise|cummax|cummin|weight_norm|sobol)"),
    ("other", r"^_backward|^get_|^set_data"),
    ("make, copy", r"^_?(cast|type_as|cpu|cuda|from_file|item|pin_memory|local_scalar|contiguous|data|promote|can_cast|result_type)"),
)
"""The first pattern that is found in an overload's name decides; what none names is a function of elements, or a synonym of one."""
ORDER = tuple(dict.fromkeys([*_FILES, *(family for family, _ in _NAMES if family != "other"), "other"]))
"""The order in which families are shown."""
_BY_FILE = {file: family for family, files in _FILES.items() for file in files.split()}
_BY_NAME = tuple((family, re.compile(pattern)) for family, pattern in _NAMES)


def family_of(name: str, file: str = "") -> str:
    """The family of an overload: by the file of its lowering, else by its name."""
    if file in _BY_FILE:
        return _BY_FILE[file]
    base = name.partition(".")[0]
    return next((family for family, pattern in _BY_NAME if pattern.search(base)), "pointwise")
