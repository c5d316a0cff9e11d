"""The name of an exported model on its card: the hub's, or that of its folder."""

from sentloom.encoder import Encoder
from sentloom.encoder.catalogue.listed import EMBEDDED
from sentloom.export.card import origin_of


def test_a_folder_in_the_hubs_cache_has_the_hubs_name(bert):
    encoder = Encoder.load(bert)
    encoder.backbone.model.config.name_or_path = "/cache/hub/models--owner--name/snapshots/0a1b"
    assert (origin_of(encoder).name, origin_of(encoder).base) == ("owner/name", "owner/name")


def test_any_other_folder_is_called_by_its_name(bert):
    origin = origin_of(Encoder.load(bert))
    assert (origin.name, origin.base) == (bert.name, None)


def test_the_embedded_encoder_has_its_licence():
    origin = origin_of(Encoder.load("embedded"))
    assert (origin.name, origin.facts["license"]) == (EMBEDDED.upstream, "apache-2.0")
