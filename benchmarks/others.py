"""Models of other packages and models without a package, as users define them.

Each public function returns (module, inputs).
"""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

IMAGE = torch.zeros(1, 3, 256, 256)


def unet_2d() -> Any:
    """Return an unconditional diffusion model of diffusers."""
    from diffusers import UNet2DModel

    return UNet2DModel(sample_size=64), (torch.zeros(1, 3, 64, 64), torch.zeros(1, dtype=torch.int64))


def unet_conditional() -> Any:
    """Return the denoiser of Stable Diffusion 1."""
    from diffusers import UNet2DConditionModel

    inputs = (torch.zeros(1, 4, 64, 64), torch.zeros(1, dtype=torch.int64), torch.zeros(1, 77, 768))
    return UNet2DConditionModel(cross_attention_dim=768), inputs


def autoencoder_kl() -> Any:
    """Return the autoencoder of Stable Diffusion 1."""
    from diffusers import AutoencoderKL

    kinds = {"down_block_types": ("DownEncoderBlock2D",) * 4, "up_block_types": ("UpDecoderBlock2D",) * 4}
    return AutoencoderKL(**kinds, block_out_channels=(128, 256, 512, 512), layers_per_block=2), IMAGE


def diffusion_transformer() -> Any:
    """Return a DiT-XL/2."""
    from diffusers import DiTTransformer2DModel

    labels = {"timestep": torch.zeros(1, dtype=torch.int64), "class_labels": torch.zeros(1, dtype=torch.int64)}
    return DiTTransformer2DModel(), {"hidden_states": torch.zeros(1, 4, 32, 32), **labels}


def diffusion_sd3() -> Any:
    """Return the denoiser of Stable Diffusion 3 with two layers."""
    from diffusers import SD3Transformer2DModel

    return SD3Transformer2DModel(num_layers=2), {
        "hidden_states": torch.zeros(1, 16, 64, 64),
        "encoder_hidden_states": torch.zeros(1, 154, 4096),
        "pooled_projections": torch.zeros(1, 2048),
        "timestep": torch.zeros(1, dtype=torch.int64),
    }


def _yolo(name: str, kind: str = "DetectionModel", size: int = 640) -> Any:
    from ultralytics.nn import tasks

    return getattr(tasks, kind)(f"{name}.yaml", verbose=False), torch.zeros(1, 3, size, size)


def yolov5() -> Any:
    """Return a YOLOv5 detector."""
    return _yolo("yolov5n")


def yolov8() -> Any:
    """Return a YOLOv8 detector."""
    return _yolo("yolov8n")


def yolov10() -> Any:
    """Return a YOLOv10 detector, which needs no non-maximum suppression."""
    return _yolo("yolov10n")


def yolo11() -> Any:
    """Return a YOLO11 detector."""
    return _yolo("yolo11n")


def yolo11_segmentation() -> Any:
    """Return a YOLO11 model for segmentation."""
    return _yolo("yolo11n-seg", "SegmentationModel")


def yolo11_pose() -> Any:
    """Return a YOLO11 model for key points."""
    return _yolo("yolo11n-pose", "PoseModel")


def yolo11_fused() -> Any:
    """Return a YOLO11 detector with batch norms folded into convolutions."""
    module, image = _yolo("yolo11n")
    return module.fuse(), image


def rtdetr() -> Any:
    """Return an RT-DETR, a detection transformer."""
    return _yolo("rtdetr-l", "RTDETRDetectionModel")


def _graph(module: nn.Module) -> Any:
    return module, {"x": torch.zeros(2708, 1433), "edge_index": torch.zeros(2, 10556, dtype=torch.int64)}


def gcn() -> Any:
    """Return a graph convolutional network on a graph of Cora's size."""
    from torch_geometric.nn import GCN

    return _graph(GCN(1433, 64, 2, 7))


def graph_sage() -> Any:
    """Return GraphSAGE on a graph of Cora's size."""
    from torch_geometric.nn import GraphSAGE

    return _graph(GraphSAGE(1433, 64, 2, 7))


def gat() -> Any:
    """Return a graph attention network on a graph of Cora's size."""
    from torch_geometric.nn import GAT

    return _graph(GAT(1433, 64, 2, 7, heads=8))


def gin() -> Any:
    """Return a graph isomorphism network on a graph of Cora's size."""
    from torch_geometric.nn import GIN

    return _graph(GIN(1433, 64, 2, 7))


def monai_unet() -> Any:
    """Return MONAI's U-Net for volumes."""
    from monai.networks.nets import UNet

    sizes = {"channels": (16, 32, 64, 128), "strides": (2, 2, 2), "num_res_units": 2}
    return UNet(spatial_dims=3, in_channels=1, out_channels=2, **sizes), torch.zeros(1, 1, 96, 96, 96)


def monai_swin_unetr() -> Any:
    """Return MONAI's Swin UNETR for volumes."""
    from monai.networks.nets import SwinUNETR

    return SwinUNETR(in_channels=1, out_channels=14, feature_size=24), torch.zeros(1, 1, 64, 64, 64)


def monai_unetr() -> Any:
    """Return MONAI's UNETR for volumes."""
    from monai.networks.nets import UNETR

    return UNETR(in_channels=1, out_channels=14, img_size=(96, 96, 96)), torch.zeros(1, 1, 96, 96, 96)


def monai_segresnet() -> Any:
    """Return MONAI's SegResNet for volumes."""
    from monai.networks.nets import SegResNet

    return SegResNet(), torch.zeros(1, 1, 96, 96, 96)


def smp_unet() -> Any:
    """Return a U-Net with a ResNet-34 encoder."""
    import segmentation_models_pytorch as smp

    return smp.Unet("resnet34", encoder_weights=None), IMAGE


def smp_deeplab() -> Any:
    """Return DeepLabV3+ with a ResNet-34 encoder."""
    import segmentation_models_pytorch as smp

    return smp.DeepLabV3Plus("resnet34", encoder_weights=None), IMAGE


def smp_segformer() -> Any:
    """Return a SegFormer."""
    import segmentation_models_pytorch as smp

    return smp.Segformer("mit_b0", encoder_weights=None), IMAGE


def wav2vec2() -> Any:
    """Return wav2vec 2.0 on one second of speech."""
    from torchaudio.models import wav2vec2_base

    return wav2vec2_base(), torch.zeros(1, 16000)


def conformer() -> Any:
    """Return a Conformer on speech features with lengths."""
    from torchaudio.models import Conformer

    sizes = {"input_dim": 80, "num_heads": 4, "ffn_dim": 128, "num_layers": 4, "depthwise_conv_kernel_size": 31}
    return Conformer(**sizes), (torch.zeros(2, 100, 80), torch.tensor([100, 80]))


def tacotron2() -> Any:
    """Return Tacotron 2 on text and target frames, as in training."""
    from torchaudio.models import Tacotron2

    tokens, frames = torch.zeros(1, 30, dtype=torch.int64), torch.zeros(1, 80, 50)
    return Tacotron2(), (tokens, torch.tensor([30]), frames, torch.tensor([50]))


def demucs() -> Any:
    """Return Hybrid Demucs on one second of music."""
    from torchaudio.models import HDemucs

    return HDemucs(sources=["drums", "bass", "other", "vocals"]), torch.zeros(1, 2, 44100)


class _Dqn(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(4, 32, 8, 4), nn.ReLU(), nn.Conv2d(32, 64, 4, 2), nn.ReLU(), nn.Flatten()
        )
        self.head = nn.Linear(self.features(torch.zeros(1, 4, 84, 84)).shape[1], 6)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = self.head(self.features(x))
        return out


def deep_q() -> Any:
    """Return a deep Q-network, which determines its sizes by a forward pass."""
    return _Dqn(), torch.zeros(1, 4, 84, 84)


def torch_transformer() -> Any:
    """Return torch's own encoder-decoder transformer."""
    return nn.Transformer(batch_first=True), (torch.zeros(1, 32, 512), torch.zeros(1, 32, 512))


class _Recommender(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.tables = nn.ModuleList(nn.EmbeddingBag(1000, 64, mode="sum") for _ in range(8))
        self.bottom = nn.Sequential(nn.Linear(13, 512), nn.ReLU(), nn.Linear(512, 64))
        self.top = nn.Sequential(nn.Linear(64 + 36, 512), nn.ReLU(), nn.Linear(512, 1))

    def forward(self, dense: torch.Tensor, sparse: torch.Tensor) -> torch.Tensor:
        bottom = self.bottom(dense)
        found = [bottom, *(table(sparse[:, index]) for index, table in enumerate(self.tables))]
        vectors = torch.stack(found, 1)
        rows, columns = torch.tril_indices(len(found), len(found), -1)
        pairs = torch.bmm(vectors, vectors.transpose(1, 2))[:, rows, columns]
        out: torch.Tensor = self.top(torch.cat([bottom, pairs], 1))
        return out


def recommender() -> Any:
    """Return a DLRM recommender."""
    return _Recommender(), (torch.zeros(16, 13), torch.zeros(16, 8, 4, dtype=torch.int64))


def _main() -> None:
    raise SystemExit("run benchmarks/breadth.py --only others")


if __name__ == "__main__":
    _main()
