"""Gradients in evaluation mode: cuDNN's RNNs, which have none there, are not used, and dropout stays away."""

from __future__ import annotations

import pytest
import torch

from regard.evidence.differentiating import differentiating


def test_cudnn_is_off_for_as_long_and_gradients_are_on() -> None:
    assert torch.backends.cudnn.enabled
    with torch.no_grad():
        with differentiating():
            assert not torch.backends.cudnn.enabled and torch.is_grad_enabled()
        assert torch.backends.cudnn.enabled and not torch.is_grad_enabled()


def test_it_is_on_again_after_an_error() -> None:
    with pytest.raises(RuntimeError), differentiating():
        raise RuntimeError
    assert torch.backends.cudnn.enabled


def test_who_does_without_cudnn_goes_on_without(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.backends.cudnn, "enabled", False)
    with differentiating():
        pass
    assert not torch.backends.cudnn.enabled
